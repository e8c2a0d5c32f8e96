-- chain/outgoing: what the intents have in common that one transaction pays.
ALTER TABLE cryptopay_outcomes ADD COLUMN "batch" TEXT NOT NULL DEFAULT '';
-- withdrawal: since when it waits for what it waits for.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "waiting_since" INTEGER NOT NULL DEFAULT 0;
-- The App: what payments of each network are at least, in the system's partition.
CREATE TABLE IF NOT EXISTS cryptopay_minimums (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "at" INTEGER NOT NULL,
  "samples" TEXT NOT NULL,
  "least" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_minimums_due ON cryptopay_minimums (due, part, id) WHERE due > 0;
