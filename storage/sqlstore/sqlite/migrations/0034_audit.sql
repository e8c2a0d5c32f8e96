-- chain/outgoing: what operators have done by hand, as a chain.
ALTER TABLE cryptopay_operations ADD COLUMN "number" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_operations ADD COLUMN "previous" BLOB NOT NULL DEFAULT x'';
ALTER TABLE cryptopay_operations ADD COLUMN "hash" BLOB NOT NULL DEFAULT x'';
CREATE INDEX IF NOT EXISTS cryptopay_operations_i0 ON cryptopay_operations (part, "number");
-- storage/audit: the newest entry of each chain.
CREATE TABLE IF NOT EXISTS cryptopay_audit_heads (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "number" INTEGER NOT NULL,
  "hash" BLOB NOT NULL,
  "mac" BLOB NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_audit_heads_due ON cryptopay_audit_heads (due, part, id) WHERE due > 0;
-- storage/seal: the newest entry of the chain that a seal has seen.
ALTER TABLE cryptopay_seals ADD COLUMN "audit" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_seals ADD COLUMN "audit_hash" BLOB NOT NULL DEFAULT x'';
