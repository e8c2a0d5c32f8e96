-- chain/outgoing: what operators have halted, and what they have done by hand.
CREATE TABLE IF NOT EXISTS cryptopay_halts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "halts" TEXT NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_halts_due ON cryptopay_halts (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_operations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "object" TEXT NOT NULL,
  "state_before" TEXT NOT NULL,
  "state_after" TEXT NOT NULL,
  "copied" INTEGER NOT NULL,
  "at" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_operations_due ON cryptopay_operations (due, part, id) WHERE due > 0;
CREATE INDEX IF NOT EXISTS cryptopay_operations_a0 ON cryptopay_operations ("at");
-- withdrawal: what was told of why one waits.
CREATE TABLE IF NOT EXISTS cryptopay_withdrawal_waits (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "since" INTEGER NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "alerted" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_withdrawal_waits_due ON cryptopay_withdrawal_waits (due, part, id) WHERE due > 0;
-- wallet/treasury: the reason to wait that the operator was told of.
ALTER TABLE cryptopay_sweep_notes ADD COLUMN "alerted" TEXT NOT NULL DEFAULT '';
-- chain/incoming: deep forks after which settled payouts are looked at again.
CREATE TABLE IF NOT EXISTS cryptopay_forks (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "height" INTEGER NOT NULL,
  "time" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_forks_due ON cryptopay_forks (due, part, id) WHERE due > 0;
