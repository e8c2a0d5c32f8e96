-- chain/outgoing: what the intents have in common that one transaction pays.
ALTER TABLE cryptopay_outcomes ADD COLUMN "batch" text COLLATE "C" NOT NULL DEFAULT '';
-- withdrawal: since when it waits for what it waits for.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "waiting_since" bigint NOT NULL DEFAULT 0;
-- The App: what payments of each network are at least, in the system's partition.
CREATE TABLE cryptopay_minimums (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "at" bigint NOT NULL,
  "samples" text COLLATE "C" NOT NULL,
  "least" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_minimums_due ON cryptopay_minimums (due, part, id) WHERE due > 0;
