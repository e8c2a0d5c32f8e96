-- reconcile: looks at addresses, and differences between the books and the chains.
CREATE TABLE cryptopay_looks (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "looked_at" bigint NOT NULL,
  "waits" text COLLATE "C" NOT NULL,
  "waits_since" bigint NOT NULL,
  "watch_until" bigint NOT NULL,
  "base_height" bigint NOT NULL,
  "base_cut" bigint NOT NULL,
  "reading" text COLLATE "C" NOT NULL,
  "spots" text COLLATE "C" NOT NULL,
  "earlier" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_looks_i0 ON cryptopay_looks (part, "looked_at");
CREATE INDEX cryptopay_looks_i1 ON cryptopay_looks (part, "waits", "waits_since");
CREATE INDEX cryptopay_looks_due ON cryptopay_looks (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_looks ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_differences (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "network" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "amount" text COLLATE "C" NOT NULL,
  "held" text COLLATE "C" NOT NULL,
  "height" bigint NOT NULL,
  "since" bigint NOT NULL,
  "looked_at" bigint NOT NULL,
  "halted" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_differences_i0 ON cryptopay_differences (part, "tenant", "currency");
CREATE INDEX cryptopay_differences_due ON cryptopay_differences (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_differences ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_look_places (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "seq" bigint NOT NULL,
  "final_at" bigint NOT NULL,
  "earlier_seq" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_look_places_due ON cryptopay_look_places (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_look_places ALTER COLUMN part SET STATISTICS 0;
-- incoming: transfers to an address from a block on.
CREATE INDEX cryptopay_sightings_i2 ON cryptopay_sightings (part, "address", "height");
-- outgoing: orders of a tenant that have changed since a time.
CREATE INDEX cryptopay_intents_i3 ON cryptopay_intents (part, "tenant", "updated_at");
-- outgoing: what each transaction cost that has landed.
ALTER TABLE cryptopay_attempts ADD COLUMN "cost" bigint NOT NULL DEFAULT 0;
