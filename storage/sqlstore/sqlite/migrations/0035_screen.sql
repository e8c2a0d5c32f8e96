-- payment: what the host's Screen said of a deposit.
ALTER TABLE cryptopay_deposits ADD COLUMN "screen" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_reason" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_deposits ADD COLUMN "screened_at" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_next" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "screen_told" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_deposits ADD COLUMN "held_as" TEXT NOT NULL DEFAULT '';
