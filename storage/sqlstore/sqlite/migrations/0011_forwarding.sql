-- chain/incoming: currencies whose payouts are halted. wallet/treasury: what a sweep is
-- worth, what it has cost, and why it waits.
CREATE TABLE IF NOT EXISTS cryptopay_asset_halts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "since" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_asset_halts_due ON cryptopay_asset_halts (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_sweep_notes (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "since" INTEGER NOT NULL,
  "next" INTEGER NOT NULL,
  "due_below" INTEGER NOT NULL,
  "tries" INTEGER NOT NULL,
  "spent" INTEGER NOT NULL,
  "sent" INTEGER NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "gas" INTEGER NOT NULL,
  "gas_cost" INTEGER NOT NULL,
  "payout" TEXT NOT NULL,
  "allowed" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_sweep_notes_i0 ON cryptopay_sweep_notes (part, "currency", "due_below");
CREATE INDEX IF NOT EXISTS cryptopay_sweep_notes_i1 ON cryptopay_sweep_notes (part, "tenant", "currency", "amount");
CREATE INDEX IF NOT EXISTS cryptopay_sweep_notes_due ON cryptopay_sweep_notes (due, part, id) WHERE due > 0;
