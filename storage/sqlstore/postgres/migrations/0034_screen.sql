-- payment: what the host's Screen said of a deposit.
ALTER TABLE cryptopay_deposits ADD COLUMN "screen" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_reason" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_deposits ADD COLUMN "screened_at" bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_next" bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_told" bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "held_as" text COLLATE "C" NOT NULL DEFAULT '';
