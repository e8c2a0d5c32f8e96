-- refill: transactions of cold coins that a person signs elsewhere.
CREATE TABLE IF NOT EXISTS cryptopay_refill_proposals (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "proposal_id" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "from_address" TEXT NOT NULL,
  "to_address" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "fee" INTEGER NOT NULL,
  "inputs" TEXT NOT NULL,
  "outputs" TEXT NOT NULL,
  "payload" BLOB NOT NULL,
  "tx" TEXT NOT NULL,
  "seal" TEXT NOT NULL,
  "raw" BLOB NOT NULL,
  "status" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "requested_by" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "expires_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_refill_proposals_i0 ON cryptopay_refill_proposals (part, "currency", "number");
CREATE INDEX IF NOT EXISTS cryptopay_refill_proposals_i1 ON cryptopay_refill_proposals (part, "tx");
CREATE INDEX IF NOT EXISTS cryptopay_refill_proposals_i2 ON cryptopay_refill_proposals (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_refill_proposals_due ON cryptopay_refill_proposals (due, part, id) WHERE due > 0;
