-- chain/outgoing: what the intents have in common that one transaction pays.
ALTER TABLE cryptopay_outcomes ADD COLUMN /*M! IF NOT EXISTS */ `batch` longblob NOT NULL DEFAULT ('');
-- withdrawal: since when it waits for what it waits for.
ALTER TABLE cryptopay_withdrawals ADD COLUMN /*M! IF NOT EXISTS */ `waiting_since` bigint NOT NULL DEFAULT 0;
-- The App: what payments of each network are at least, in the system's partition.
CREATE TABLE IF NOT EXISTS cryptopay_minimums (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `at` bigint NOT NULL,
  `samples` longblob NOT NULL,
  `least` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_minimums_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
