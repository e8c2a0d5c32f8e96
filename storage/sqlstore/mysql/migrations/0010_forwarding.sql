-- chain/incoming: currencies whose payouts are halted. wallet/treasury: what a sweep is
-- worth, what it has cost, and why it waits.
CREATE TABLE IF NOT EXISTS cryptopay_asset_halts (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `reason` longblob NOT NULL,
  `since` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_asset_halts_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_sweep_notes (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `address` longblob NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `amount` bigint NOT NULL,
  `waiting` longblob NOT NULL,
  `since` bigint NOT NULL,
  `next` bigint NOT NULL,
  `due_below` bigint NOT NULL,
  `tries` bigint NOT NULL,
  `spent` bigint NOT NULL,
  `sent` bigint NOT NULL,
  `max_cost` bigint NOT NULL,
  `gas` bigint NOT NULL,
  `gas_cost` bigint NOT NULL,
  `payout` longblob NOT NULL,
  `allowed` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_sweep_notes_i0 (part, `currency`, `due_below`),
  INDEX cryptopay_sweep_notes_i1 (part, `tenant`, `currency`, `amount`),
  INDEX cryptopay_sweep_notes_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
