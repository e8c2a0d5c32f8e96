-- withdrawal: who asked for it, and what people decided about it.
ALTER TABLE cryptopay_withdrawals ADD COLUMN /*M! IF NOT EXISTS */ `requested_by` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_withdrawals ADD COLUMN /*M! IF NOT EXISTS */ `decisions` longblob NOT NULL DEFAULT ('null');
