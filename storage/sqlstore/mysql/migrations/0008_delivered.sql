-- withdrawal: what the recipient got, where that was less than ordered.
ALTER TABLE cryptopay_withdrawals ADD COLUMN `delivered` bigint NOT NULL DEFAULT 0;
