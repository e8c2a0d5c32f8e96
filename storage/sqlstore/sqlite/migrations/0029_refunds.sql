-- refund: what customers get back, and claim links.
CREATE TABLE IF NOT EXISTS cryptopay_refunds (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "payment" TEXT NOT NULL,
  "deposit" TEXT NOT NULL,
  "withdrawal" TEXT NOT NULL,
  "status" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "currency" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "scale" INTEGER NOT NULL,
  "wallet" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "claim" TEXT NOT NULL,
  "expires_at" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "waiting_since" INTEGER NOT NULL,
  "failure" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "requested_by" TEXT NOT NULL,
  "seal" TEXT NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_refunds_i0 ON cryptopay_refunds (part, "payment", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_refunds_i1 ON cryptopay_refunds (part, "deposit");
CREATE INDEX IF NOT EXISTS cryptopay_refunds_i2 ON cryptopay_refunds (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_refunds_a0 ON cryptopay_refunds ("claim");
CREATE INDEX IF NOT EXISTS cryptopay_refunds_due ON cryptopay_refunds (due, part, id) WHERE due > 0;
