-- storage: what Changes tell of, and the number of each partition's newest event.
CREATE TABLE IF NOT EXISTS cryptopay_stream_events (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `kind` longblob NOT NULL,
  `object` longblob NOT NULL,
  `at` bigint NOT NULL,
  `data` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_stream_events_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_streams (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `last` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_streams_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
