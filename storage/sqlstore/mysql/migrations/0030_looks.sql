-- reconcile: looks at addresses, and differences between the books and the chains.
CREATE TABLE IF NOT EXISTS cryptopay_looks (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `looked_at` bigint NOT NULL,
  `waits` varbinary(500) NOT NULL,
  `waits_since` bigint NOT NULL,
  `watch_until` bigint NOT NULL,
  `base_height` bigint NOT NULL,
  `base_cut` bigint NOT NULL,
  `reading` longblob NOT NULL,
  `spots` longblob NOT NULL,
  `earlier` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_looks_i0 (part, `looked_at`),
  INDEX cryptopay_looks_i1 (part, `waits`, `waits_since`),
  INDEX cryptopay_looks_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_differences (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `network` longblob NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `address` longblob NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `kind` longblob NOT NULL,
  `amount` longblob NOT NULL,
  `held` longblob NOT NULL,
  `height` bigint NOT NULL,
  `since` bigint NOT NULL,
  `looked_at` bigint NOT NULL,
  `halted` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_differences_i0 (part, `tenant`, `currency`),
  INDEX cryptopay_differences_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS cryptopay_look_places (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `seq` bigint NOT NULL,
  `final_at` bigint NOT NULL,
  `earlier_seq` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_look_places_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
-- incoming: transfers to an address from a block on.
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_sightings_i2 ON cryptopay_sightings (part, `address`, `height`);
-- outgoing: orders of a tenant that have changed since a time.
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_intents_i3 ON cryptopay_intents (part, `tenant`, `updated_at`);
-- outgoing: what each transaction cost that has landed.
ALTER TABLE cryptopay_attempts ADD COLUMN /*M! IF NOT EXISTS */ `cost` bigint NOT NULL DEFAULT 0;
