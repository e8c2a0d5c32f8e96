-- storage/seal, by tenant: the chain of hashes over the journal, and up to where each
-- history is sealed.
CREATE TABLE IF NOT EXISTS cryptopay_seals (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "number" INTEGER NOT NULL,
  "sealed_at" INTEGER NOT NULL,
  "ranges" TEXT NOT NULL,
  "marks" BLOB NOT NULL,
  "hash" BLOB NOT NULL,
  "mac" BLOB NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_seals_due ON cryptopay_seals (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_seal_heights (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "account" TEXT NOT NULL,
  "asset" TEXT NOT NULL,
  "seq" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_seal_heights_due ON cryptopay_seal_heights (due, part, id) WHERE due > 0;
