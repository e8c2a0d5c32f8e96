-- chain/outgoing: what became of an order's transactions before it started again.
ALTER TABLE cryptopay_intents ADD COLUMN "endings" TEXT NOT NULL DEFAULT 'null';
-- chain/keys: what a signed transaction is and spends, and which may still pay a withdrawal.
ALTER TABLE cryptopay_signed_attempts ADD COLUMN "tx" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_signed_attempts ADD COLUMN "slots" TEXT NOT NULL DEFAULT 'null';
CREATE TABLE IF NOT EXISTS cryptopay_signed_orders (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "live" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_signed_orders_due ON cryptopay_signed_orders (due, part, id) WHERE due > 0;
