-- chain/outgoing: withdrawals that the transaction of another one pays.
CREATE TABLE IF NOT EXISTS cryptopay_rides (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `carrier` varbinary(500) NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_rides_i0 (part, `carrier`),
  INDEX cryptopay_rides_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
