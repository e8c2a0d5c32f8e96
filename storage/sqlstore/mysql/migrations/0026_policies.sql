-- policy: what a tenant's payouts are held to, what went out by its rules, and where to.
CREATE TABLE IF NOT EXISTS cryptopay_policies (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `number` bigint NOT NULL,
  `rules` longblob NOT NULL,
  `actor` longblob NOT NULL,
  `reason` longblob NOT NULL,
  `at` bigint NOT NULL,
  `seal` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_policies_i0 (part, `number`),
  INDEX cryptopay_policies_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_policy_uses (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `rule` longblob NOT NULL,
  `slots` longblob NOT NULL,
  `at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_policy_uses_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_policy_destinations (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `network` longblob NOT NULL,
  `address` longblob NOT NULL,
  `memo` longblob NOT NULL,
  `actor` longblob NOT NULL,
  `reason` longblob NOT NULL,
  `at` bigint NOT NULL,
  `removed_at` bigint NOT NULL,
  `seal` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_policy_destinations_i0 (part, `at`),
  INDEX cryptopay_policy_destinations_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
