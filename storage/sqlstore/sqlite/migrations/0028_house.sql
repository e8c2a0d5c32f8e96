-- house: payments of fees and float to the host's own addresses.
CREATE TABLE IF NOT EXISTS cryptopay_house_payments (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "payment_id" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "source" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "all_funds" INTEGER NOT NULL,
  "status" TEXT NOT NULL,
  "stage" TEXT NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "waiting_since" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "outcome_at" INTEGER NOT NULL,
  "requested_by" TEXT NOT NULL,
  "mandate" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "completed_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_house_payments_i0 ON cryptopay_house_payments (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_house_payments_i1 ON cryptopay_house_payments (part, "status", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_house_payments_due ON cryptopay_house_payments (due, part, id) WHERE due > 0;
