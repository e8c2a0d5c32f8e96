-- refund: what customers get back, and claim links.
CREATE TABLE cryptopay_refunds (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "payment" text COLLATE "C" NOT NULL,
  "deposit" text COLLATE "C" NOT NULL,
  "withdrawal" text COLLATE "C" NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "scale" bigint NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "claim" text COLLATE "C" NOT NULL,
  "expires_at" bigint NOT NULL,
  "waiting" text COLLATE "C" NOT NULL,
  "waiting_since" bigint NOT NULL,
  "failure" text COLLATE "C" NOT NULL,
  "callback_url" text COLLATE "C" NOT NULL,
  "requested_by" text COLLATE "C" NOT NULL,
  "seal" text COLLATE "C" NOT NULL,
  "event_seq" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_refunds_i0 ON cryptopay_refunds (part, "payment", "created_at");
CREATE INDEX cryptopay_refunds_i1 ON cryptopay_refunds (part, "deposit");
CREATE INDEX cryptopay_refunds_i2 ON cryptopay_refunds (part, "created_at");
CREATE INDEX cryptopay_refunds_a0 ON cryptopay_refunds ("claim");
CREATE INDEX cryptopay_refunds_due ON cryptopay_refunds (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_refunds ALTER COLUMN part SET STATISTICS 0;
