-- The kernel's own tables. Amounts are 64-bit integers. The CHECKs are a backstop:
-- verdicts are taken before. Text sorts by its bytes. Balances and counters are
-- overwritten all the time: half of each page is left to that.
CREATE TABLE cryptopay_parts (
  part text COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE TABLE cryptopay_ledger_txs (
  part text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  change_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  ref text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (part, id)
);

CREATE TABLE cryptopay_balances (
  part text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  posted bigint NOT NULL,
  held bigint NOT NULL,
  seq bigint NOT NULL CHECK (seq >= 0),
  PRIMARY KEY (part, account, asset),
  CHECK (substr(account, 1, 7) <> 'wallet/' OR (held >= 0 AND posted >= held))
) WITH (fillfactor = 50);

CREATE TABLE cryptopay_entries (
  part text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  tx text COLLATE "C" NOT NULL,
  delta bigint NOT NULL CHECK (delta <> 0),
  balance_after bigint NOT NULL,
  PRIMARY KEY (part, account, asset, seq)
);

CREATE TABLE cryptopay_levels (
  part text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  value bigint NOT NULL CHECK (value >= 0),
  PRIMARY KEY (part, name)
) WITH (fillfactor = 50);

-- First responses of idempotent requests.
CREATE TABLE cryptopay_idempotency (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "fingerprint" text COLLATE "C" NOT NULL,
  "response" bytea NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_idempotency_due ON cryptopay_idempotency (due, part, id) WHERE due > 0;

-- The unified history: one row per payment or withdrawal.
CREATE TABLE cryptopay_activity (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "fee" bigint NOT NULL,
  "net" bigint NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "tx_hash" text COLLATE "C" NOT NULL,
  "reference" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "metadata" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_activity_i0 ON cryptopay_activity (part, "created_at");
CREATE INDEX cryptopay_activity_i1 ON cryptopay_activity (part, "kind", "created_at");
CREATE INDEX cryptopay_activity_i2 ON cryptopay_activity (part, "status", "created_at");
CREATE INDEX cryptopay_activity_i3 ON cryptopay_activity (part, "currency", "created_at");
CREATE INDEX cryptopay_activity_due ON cryptopay_activity (due, part, id) WHERE due > 0;
