-- The kernel's own tables. Amounts are 64-bit integers. The CHECKs are a backstop:
-- verdicts are taken before. A partition's turn is written where a lock alone does
-- not hold off everybody (Galera).
CREATE TABLE IF NOT EXISTS cryptopay_parts (
  part varbinary(500) NOT NULL PRIMARY KEY,
  turn bigint NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_ledger_txs (
  part varbinary(500) NOT NULL,
  id varbinary(500) NOT NULL,
  change_id varbinary(500) NOT NULL,
  kind varbinary(500) NOT NULL,
  ref varbinary(500) NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_balances (
  part varbinary(500) NOT NULL,
  account varbinary(500) NOT NULL,
  asset varbinary(500) NOT NULL,
  posted bigint NOT NULL,
  held bigint NOT NULL,
  seq bigint NOT NULL CHECK (seq >= 0),
  PRIMARY KEY (part, account, asset),
  CHECK (substr(account, 1, 7) <> 'wallet/' OR (held >= 0 AND posted >= held))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_entries (
  part varbinary(500) NOT NULL,
  account varbinary(500) NOT NULL,
  asset varbinary(500) NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  tx varbinary(500) NOT NULL,
  delta bigint NOT NULL CHECK (delta <> 0),
  balance_after bigint NOT NULL,
  PRIMARY KEY (part, account, asset, seq)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_levels (
  part varbinary(500) NOT NULL,
  name varbinary(500) NOT NULL,
  value bigint NOT NULL CHECK (value >= 0),
  PRIMARY KEY (part, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- First responses of idempotent requests.
CREATE TABLE IF NOT EXISTS cryptopay_idempotency (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `fingerprint` longblob NOT NULL,
  `response` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_idempotency_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The unified history: one row per payment or withdrawal.
CREATE TABLE IF NOT EXISTS cryptopay_activity (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `kind` varbinary(500) NOT NULL,
  `status` varbinary(500) NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `amount` bigint NOT NULL,
  `fee` bigint NOT NULL,
  `net` bigint NOT NULL,
  `address` longblob NOT NULL,
  `tx_hash` longblob NOT NULL,
  `reference` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  `metadata` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_activity_i0 (part, `created_at`),
  INDEX cryptopay_activity_i1 (part, `kind`, `created_at`),
  INDEX cryptopay_activity_i2 (part, `status`, `created_at`),
  INDEX cryptopay_activity_i3 (part, `currency`, `created_at`),
  INDEX cryptopay_activity_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
