-- storage/seal, by tenant: the chain of hashes over the journal, and up to where each
-- history is sealed.
CREATE TABLE IF NOT EXISTS cryptopay_seals (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `number` bigint NOT NULL,
  `sealed_at` bigint NOT NULL,
  `ranges` longblob NOT NULL,
  `marks` longblob NOT NULL,
  `hash` longblob NOT NULL,
  `mac` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_seals_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_seal_heights (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `account` longblob NOT NULL,
  `asset` longblob NOT NULL,
  `seq` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_seal_heights_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
