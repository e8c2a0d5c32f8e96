-- chain/incoming: transfers of contracts that the process which read them does not list, and
-- what is missing from a mempool; the root package: what older versions do not know, and keys.
CREATE TABLE IF NOT EXISTS cryptopay_unlisted (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `contract` varbinary(500) NOT NULL,
  `coins` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_unlisted_i0 (part, `contract`),
  INDEX cryptopay_unlisted_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_missing (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `since` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_missing_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_abilities (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `on` bigint NOT NULL,
  `since` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_abilities_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_fingerprints (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `sum` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_fingerprints_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
