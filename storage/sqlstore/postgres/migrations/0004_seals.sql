-- storage/seal, by tenant: the chain of hashes over the journal, and up to where each
-- history is sealed.
CREATE TABLE cryptopay_seals (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "number" bigint NOT NULL,
  "sealed_at" bigint NOT NULL,
  "ranges" text COLLATE "C" NOT NULL,
  "marks" bytea NOT NULL,
  "hash" bytea NOT NULL,
  "mac" bytea NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_seals_due ON cryptopay_seals (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_seal_heights (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "account" text COLLATE "C" NOT NULL,
  "asset" text COLLATE "C" NOT NULL,
  "seq" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_seal_heights_due ON cryptopay_seal_heights (due, part, id) WHERE due > 0;
