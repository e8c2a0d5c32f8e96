-- chain/outgoing: what operators have halted, and what they have done by hand.
CREATE TABLE IF NOT EXISTS cryptopay_halts (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `halts` longblob NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id),
  INDEX cryptopay_halts_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_operations (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `kind` longblob NOT NULL,
  `actor` longblob NOT NULL,
  `reason` longblob NOT NULL,
  `network` longblob NOT NULL,
  `tenant` longblob NOT NULL,
  `object` longblob NOT NULL,
  `state_before` longblob NOT NULL,
  `state_after` longblob NOT NULL,
  `copied` bigint NOT NULL,
  `at` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id),
  INDEX cryptopay_operations_due (due, part, id),
  INDEX cryptopay_operations_a0 (`at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
-- withdrawal: what was told of why one waits.
CREATE TABLE IF NOT EXISTS cryptopay_withdrawal_waits (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` longblob NOT NULL,
  `reason` longblob NOT NULL,
  `since` bigint NOT NULL,
  `event_seq` bigint NOT NULL,
  `alerted` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id),
  INDEX cryptopay_withdrawal_waits_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
-- wallet/treasury: the reason to wait that the operator was told of.
ALTER TABLE cryptopay_sweep_notes ADD COLUMN /*M! IF NOT EXISTS */ `alerted` longblob NOT NULL DEFAULT ('');
-- chain/incoming: deep forks after which settled payouts are looked at again.
CREATE TABLE IF NOT EXISTS cryptopay_forks (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `height` bigint NOT NULL,
  `time` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id),
  INDEX cryptopay_forks_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
