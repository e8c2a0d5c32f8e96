-- policy: what a tenant's payouts are held to, what went out by its rules, and where to.
CREATE TABLE IF NOT EXISTS cryptopay_policies (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "number" INTEGER NOT NULL,
  "rules" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "seal" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_policies_i0 ON cryptopay_policies (part, "number");
CREATE INDEX IF NOT EXISTS cryptopay_policies_due ON cryptopay_policies (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_policy_uses (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "rule" TEXT NOT NULL,
  "slots" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_policy_uses_due ON cryptopay_policy_uses (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_policy_destinations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "removed_at" INTEGER NOT NULL,
  "seal" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_policy_destinations_i0 ON cryptopay_policy_destinations (part, "at");
CREATE INDEX IF NOT EXISTS cryptopay_policy_destinations_due ON cryptopay_policy_destinations (due, part, id) WHERE due > 0;
