-- chain/outgoing: what the intents have in common that one transaction pays.
ALTER TABLE cryptopay_outcomes ADD COLUMN "batch" TEXT NOT NULL DEFAULT '';
-- withdrawal: since when it waits for what it waits for.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "waiting_since" INTEGER NOT NULL DEFAULT 0;
