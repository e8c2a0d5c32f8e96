-- payment: what the host's Screen said of a deposit.
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `screen` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `screen_reason` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `screened_at` bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `screen_next` bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `screen_told` bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `held_as` longblob NOT NULL DEFAULT ('');
