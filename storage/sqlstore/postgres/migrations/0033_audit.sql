-- chain/outgoing: what operators have done by hand, as a chain.
ALTER TABLE cryptopay_operations ADD COLUMN "number" bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_operations ADD COLUMN "previous" bytea NOT NULL DEFAULT '';
ALTER TABLE cryptopay_operations ADD COLUMN "hash" bytea NOT NULL DEFAULT '';
CREATE INDEX cryptopay_operations_i0 ON cryptopay_operations (part, "number");
-- storage/audit: the newest entry of each chain.
CREATE TABLE cryptopay_audit_heads (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "number" bigint NOT NULL,
  "hash" bytea NOT NULL,
  "mac" bytea NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_audit_heads_due ON cryptopay_audit_heads (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_audit_heads ALTER COLUMN part SET STATISTICS 0;
-- storage/seal: the newest entry of the chain that a seal has seen.
ALTER TABLE cryptopay_seals ADD COLUMN "audit" bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_seals ADD COLUMN "audit_hash" bytea NOT NULL DEFAULT '';
