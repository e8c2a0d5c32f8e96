-- withdrawal: withdrawals that were ordered together.
CREATE TABLE IF NOT EXISTS cryptopay_payouts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "withdrawals" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_payouts_due ON cryptopay_payouts (due, part, id) WHERE due > 0;
