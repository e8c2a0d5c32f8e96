-- chain/outgoing: what became of an order's transactions before it started again.
ALTER TABLE cryptopay_intents ADD COLUMN /*M! IF NOT EXISTS */ `endings` longblob NOT NULL DEFAULT ('null');
-- chain/keys: what a signed transaction is and spends, and which may still pay a withdrawal.
ALTER TABLE cryptopay_signed_attempts ADD COLUMN /*M! IF NOT EXISTS */ `tx` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_signed_attempts ADD COLUMN /*M! IF NOT EXISTS */ `slots` longblob NOT NULL DEFAULT ('null');
CREATE TABLE IF NOT EXISTS cryptopay_signed_orders (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `live` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_signed_orders_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
