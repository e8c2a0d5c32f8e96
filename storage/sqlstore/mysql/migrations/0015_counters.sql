-- storage: counters of what is shown at once.
CREATE TABLE IF NOT EXISTS cryptopay_counters (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `value` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_counters_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
