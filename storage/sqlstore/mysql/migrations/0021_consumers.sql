-- storage/stream: consumers of events, how far they are, and what they did not handle.
CREATE TABLE IF NOT EXISTS cryptopay_consumers (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `since` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_consumers_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_consumer_places (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `consumer` longblob NOT NULL,
  `seen` bigint NOT NULL,
  `tries` bigint NOT NULL,
  `error` longblob NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_consumer_places_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_dead_letters (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `consumer` varbinary(500) NOT NULL,
  `number` bigint NOT NULL,
  `object` varbinary(500) NOT NULL,
  `kind` longblob NOT NULL,
  `error` longblob NOT NULL,
  `at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_dead_letters_i0 (part, `consumer`, `object`),
  INDEX cryptopay_dead_letters_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
