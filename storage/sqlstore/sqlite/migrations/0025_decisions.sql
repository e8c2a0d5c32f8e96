-- withdrawal: who asked for it, and what people decided about it.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "requested_by" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_withdrawals ADD COLUMN "decisions" TEXT NOT NULL DEFAULT 'null';
