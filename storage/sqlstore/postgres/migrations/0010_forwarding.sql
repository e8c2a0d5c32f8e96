-- chain/incoming: currencies whose payouts are halted. wallet/treasury: what a sweep is
-- worth, what it has cost, and why it waits.
CREATE TABLE cryptopay_asset_halts (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "since" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_asset_halts_due ON cryptopay_asset_halts (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_sweep_notes (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "waiting" text COLLATE "C" NOT NULL,
  "since" bigint NOT NULL,
  "next" bigint NOT NULL,
  "due_below" bigint NOT NULL,
  "tries" bigint NOT NULL,
  "spent" bigint NOT NULL,
  "sent" bigint NOT NULL,
  "max_cost" bigint NOT NULL,
  "gas" bigint NOT NULL,
  "gas_cost" bigint NOT NULL,
  "payout" text COLLATE "C" NOT NULL,
  "allowed" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_sweep_notes_i0 ON cryptopay_sweep_notes (part, "currency", "due_below");
CREATE INDEX cryptopay_sweep_notes_i1 ON cryptopay_sweep_notes (part, "tenant", "currency", "amount");
CREATE INDEX cryptopay_sweep_notes_due ON cryptopay_sweep_notes (due, part, id) WHERE due > 0;
