-- reconcile: looks at addresses, and differences between the books and the chains.
CREATE TABLE IF NOT EXISTS cryptopay_looks (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "looked_at" INTEGER NOT NULL,
  "waits" TEXT NOT NULL,
  "waits_since" INTEGER NOT NULL,
  "watch_until" INTEGER NOT NULL,
  "base_height" INTEGER NOT NULL,
  "base_cut" INTEGER NOT NULL,
  "reading" TEXT NOT NULL,
  "spots" TEXT NOT NULL,
  "earlier" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_looks_i0 ON cryptopay_looks (part, "looked_at");
CREATE INDEX IF NOT EXISTS cryptopay_looks_i1 ON cryptopay_looks (part, "waits", "waits_since");
CREATE INDEX IF NOT EXISTS cryptopay_looks_due ON cryptopay_looks (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_differences (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "network" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "kind" TEXT NOT NULL,
  "amount" TEXT NOT NULL,
  "held" TEXT NOT NULL,
  "height" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  "looked_at" INTEGER NOT NULL,
  "halted" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_differences_i0 ON cryptopay_differences (part, "tenant", "currency");
CREATE INDEX IF NOT EXISTS cryptopay_differences_due ON cryptopay_differences (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_look_places (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "seq" INTEGER NOT NULL,
  "final_at" INTEGER NOT NULL,
  "earlier_seq" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_look_places_due ON cryptopay_look_places (due, part, id) WHERE due > 0;
-- incoming: transfers to an address from a block on.
CREATE INDEX IF NOT EXISTS cryptopay_sightings_i2 ON cryptopay_sightings (part, "address", "height");
-- outgoing: orders of a tenant that have changed since a time.
CREATE INDEX IF NOT EXISTS cryptopay_intents_i3 ON cryptopay_intents (part, "tenant", "updated_at");
-- outgoing: what each transaction cost that has landed.
ALTER TABLE cryptopay_attempts ADD COLUMN "cost" INTEGER NOT NULL DEFAULT 0;
