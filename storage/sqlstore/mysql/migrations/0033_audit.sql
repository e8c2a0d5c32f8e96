-- chain/outgoing: what operators have done by hand, as a chain.
ALTER TABLE cryptopay_operations ADD COLUMN /*M! IF NOT EXISTS */ `number` bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_operations ADD COLUMN /*M! IF NOT EXISTS */ `previous` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_operations ADD COLUMN /*M! IF NOT EXISTS */ `hash` longblob NOT NULL DEFAULT ('');
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_operations_i0 ON cryptopay_operations (part, `number`);
-- storage/audit: the newest entry of each chain.
CREATE TABLE IF NOT EXISTS cryptopay_audit_heads (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `number` bigint NOT NULL,
  `hash` longblob NOT NULL,
  `mac` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_audit_heads_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
-- storage/seal: the newest entry of the chain that a seal has seen.
ALTER TABLE cryptopay_seals ADD COLUMN /*M! IF NOT EXISTS */ `audit` bigint NOT NULL DEFAULT 0;
ALTER TABLE cryptopay_seals ADD COLUMN /*M! IF NOT EXISTS */ `audit_hash` longblob NOT NULL DEFAULT ('');
