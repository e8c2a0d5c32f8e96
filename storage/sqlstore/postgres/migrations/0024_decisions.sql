-- withdrawal: who asked for it, and what people decided about it.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "requested_by" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_withdrawals ADD COLUMN "decisions" text COLLATE "C" NOT NULL DEFAULT 'null';
