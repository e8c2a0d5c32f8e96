-- chain/outgoing: what became of an order's transactions before it started again.
ALTER TABLE cryptopay_intents ADD COLUMN "endings" text COLLATE "C" NOT NULL DEFAULT 'null';
-- chain/keys: what a signed transaction is and spends, and which may still pay a withdrawal.
ALTER TABLE cryptopay_signed_attempts ADD COLUMN "tx" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_signed_attempts ADD COLUMN "slots" text COLLATE "C" NOT NULL DEFAULT 'null';
CREATE TABLE cryptopay_signed_orders (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "live" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_signed_orders_due ON cryptopay_signed_orders (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_signed_orders ALTER COLUMN part SET STATISTICS 0;
