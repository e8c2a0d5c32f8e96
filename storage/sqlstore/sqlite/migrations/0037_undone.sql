-- chain/outgoing: landings of an order's transactions that forks took away after it had settled.
ALTER TABLE cryptopay_intents ADD COLUMN "undone" TEXT NOT NULL DEFAULT 'null';
ALTER TABLE cryptopay_outcomes ADD COLUMN "undone" TEXT NOT NULL DEFAULT 'null';
-- wallet/treasury: how many of them there were when the reservation was last opened or ended.
ALTER TABLE cryptopay_gas_reservations ADD COLUMN "undone" INTEGER NOT NULL DEFAULT 0;
