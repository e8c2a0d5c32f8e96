-- What each currency's code stands for in this store, in the system's partition.
CREATE TABLE IF NOT EXISTS cryptopay_listings (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `network` longblob NOT NULL,
  `contract` longblob NOT NULL,
  `decimals` bigint NOT NULL,
  `scale` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_listings_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
