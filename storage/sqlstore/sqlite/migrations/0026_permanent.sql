-- payment: an address may have many payments, one for each deposit at a permanent address.
-- A payment that has its address to itself has the slot "".
ALTER TABLE cryptopay_payments ADD COLUMN "address_id" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_payments ADD COLUMN "slot" TEXT NOT NULL DEFAULT '';
DROP INDEX cryptopay_payments_u0;
CREATE UNIQUE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, "network", "address", "slot");
-- payment: small deposits that wait at an address.
DROP INDEX cryptopay_deposits_i1;
CREATE INDEX cryptopay_deposits_i1 ON cryptopay_deposits (part, "network", "address", "booking");
CREATE TABLE IF NOT EXISTS cryptopay_permanent_addresses (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "address_id" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "external_id" TEXT NOT NULL,
  "wallet" TEXT NOT NULL,
  "wallet_ref" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "retired_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_permanent_addresses_u0 ON cryptopay_permanent_addresses (part, "network", "address");
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_permanent_addresses_u1 ON cryptopay_permanent_addresses (part, "external_id", "network");
CREATE INDEX IF NOT EXISTS cryptopay_permanent_addresses_i0 ON cryptopay_permanent_addresses (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_permanent_addresses_due ON cryptopay_permanent_addresses (due, part, id) WHERE due > 0;
