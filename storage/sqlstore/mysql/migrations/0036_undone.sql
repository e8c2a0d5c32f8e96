-- chain/outgoing: landings of an order's transactions that forks took away after it had settled.
ALTER TABLE cryptopay_intents ADD COLUMN /*M! IF NOT EXISTS */ `undone` longblob NOT NULL DEFAULT ('null');
ALTER TABLE cryptopay_outcomes ADD COLUMN /*M! IF NOT EXISTS */ `undone` longblob NOT NULL DEFAULT ('null');
-- wallet/treasury: how many of them there were when the reservation was last opened or ended.
ALTER TABLE cryptopay_gas_reservations ADD COLUMN /*M! IF NOT EXISTS */ `undone` bigint NOT NULL DEFAULT 0;
