-- withdrawal: withdrawals that were ordered together.
CREATE TABLE IF NOT EXISTS cryptopay_payouts (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `withdrawals` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id),
  INDEX cryptopay_payouts_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
