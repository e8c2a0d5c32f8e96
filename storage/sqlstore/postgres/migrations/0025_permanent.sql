-- payment: an address may have many payments, one for each deposit at a permanent address.
-- A payment that has its address to itself has the slot "".
ALTER TABLE cryptopay_payments ADD COLUMN "address_id" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_payments ADD COLUMN "slot" text COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX cryptopay_payments_new ON cryptopay_payments (part, "network", "address", "slot");
DROP INDEX cryptopay_payments_u0;
ALTER INDEX cryptopay_payments_new RENAME TO cryptopay_payments_u0;
-- payment: small deposits that wait at an address.
DROP INDEX cryptopay_deposits_i1;
CREATE INDEX cryptopay_deposits_i1 ON cryptopay_deposits (part, "network", "address", "booking");
CREATE TABLE cryptopay_permanent_addresses (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "address_id" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "external_id" text COLLATE "C" NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "wallet_ref" text COLLATE "C" NOT NULL,
  "callback_url" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "retired_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_permanent_addresses_u0 ON cryptopay_permanent_addresses (part, "network", "address");
CREATE UNIQUE INDEX cryptopay_permanent_addresses_u1 ON cryptopay_permanent_addresses (part, "external_id", "network");
CREATE INDEX cryptopay_permanent_addresses_i0 ON cryptopay_permanent_addresses (part, "created_at");
CREATE INDEX cryptopay_permanent_addresses_due ON cryptopay_permanent_addresses (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_permanent_addresses ALTER COLUMN part SET STATISTICS 0;
