-- payment: an address may have many payments, one for each deposit at a permanent address.
-- A payment that has its address to itself has the slot "".
ALTER TABLE cryptopay_payments ADD COLUMN /*M! IF NOT EXISTS */ `address_id` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_payments ADD COLUMN /*M! IF NOT EXISTS */ `slot` varbinary(500) NOT NULL DEFAULT '';
ALTER TABLE cryptopay_payments DROP INDEX cryptopay_payments_u0, ADD UNIQUE INDEX cryptopay_payments_u0 (part, `network`, `address`, `slot`);
-- payment: small deposits that wait at an address.
ALTER TABLE cryptopay_deposits DROP INDEX cryptopay_deposits_i1, ADD INDEX cryptopay_deposits_i1 (part, `network`, `address`, `booking`);
CREATE TABLE IF NOT EXISTS cryptopay_permanent_addresses (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `lease` bigint NOT NULL DEFAULT 0,
  `claims` bigint NOT NULL DEFAULT 0,
  `address_id` longblob NOT NULL,
  `network` varbinary(500) NOT NULL,
  `address` varbinary(500) NOT NULL,
  `external_id` varbinary(500) NOT NULL,
  `wallet` longblob NOT NULL,
  `wallet_ref` longblob NOT NULL,
  `callback_url` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  `retired_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_permanent_addresses_u0 (part, `network`, `address`),
  UNIQUE INDEX cryptopay_permanent_addresses_u1 (part, `external_id`, `network`),
  INDEX cryptopay_permanent_addresses_i0 (part, `created_at`),
  INDEX cryptopay_permanent_addresses_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
