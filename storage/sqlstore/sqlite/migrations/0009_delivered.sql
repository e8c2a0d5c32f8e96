-- withdrawal: what the recipient got, where that was less than ordered.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "delivered" INTEGER NOT NULL DEFAULT 0;
