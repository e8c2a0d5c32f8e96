-- The kernel's own tables. Amounts are 64-bit integers; STRICT keeps anything
-- else out. The CHECKs are a backstop: verdicts are taken before.
CREATE TABLE cryptopay_parts (
  part TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE cryptopay_ledger_txs (
  part TEXT NOT NULL,
  id TEXT NOT NULL,
  change_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE cryptopay_balances (
  part TEXT NOT NULL,
  account TEXT NOT NULL,
  asset TEXT NOT NULL,
  posted INTEGER NOT NULL,
  held INTEGER NOT NULL,
  seq INTEGER NOT NULL CHECK (seq >= 0),
  PRIMARY KEY (part, account, asset),
  CHECK (substr(account, 1, 7) <> 'wallet/' OR (held >= 0 AND posted >= held))
) STRICT, WITHOUT ROWID;

CREATE TABLE cryptopay_entries (
  part TEXT NOT NULL,
  account TEXT NOT NULL,
  asset TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq > 0),
  tx TEXT NOT NULL,
  delta INTEGER NOT NULL CHECK (delta <> 0),
  balance_after INTEGER NOT NULL,
  PRIMARY KEY (part, account, asset, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE cryptopay_levels (
  part TEXT NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL CHECK (value >= 0),
  PRIMARY KEY (part, name)
) STRICT, WITHOUT ROWID;

-- First responses of idempotent requests.
CREATE TABLE cryptopay_idempotency (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "fingerprint" TEXT NOT NULL,
  "response" BLOB NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_idempotency_due ON cryptopay_idempotency (due, part, id) WHERE due > 0;

-- The unified history: one row per payment or withdrawal.
CREATE TABLE cryptopay_activity (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "status" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "fee" INTEGER NOT NULL,
  "net" INTEGER NOT NULL,
  "address" TEXT NOT NULL,
  "tx_hash" TEXT NOT NULL,
  "reference" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "metadata" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_activity_i0 ON cryptopay_activity (part, "created_at");
CREATE INDEX cryptopay_activity_i1 ON cryptopay_activity (part, "kind", "created_at");
CREATE INDEX cryptopay_activity_i2 ON cryptopay_activity (part, "status", "created_at");
CREATE INDEX cryptopay_activity_i3 ON cryptopay_activity (part, "currency", "created_at");
CREATE INDEX cryptopay_activity_due ON cryptopay_activity (due, part, id) WHERE due > 0;
