-- chain/outgoing: what operators have halted, and what they have done by hand.
CREATE TABLE cryptopay_halts (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "halts" text COLLATE "C" NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_halts_due ON cryptopay_halts (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_halts ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_operations (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "actor" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "object" text COLLATE "C" NOT NULL,
  "state_before" text COLLATE "C" NOT NULL,
  "state_after" text COLLATE "C" NOT NULL,
  "copied" bigint NOT NULL,
  "at" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_operations_due ON cryptopay_operations (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_operations_a0 ON cryptopay_operations ("at");
ALTER TABLE cryptopay_operations ALTER COLUMN part SET STATISTICS 0;
-- withdrawal: what was told of why one waits.
CREATE TABLE cryptopay_withdrawal_waits (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "since" bigint NOT NULL,
  "event_seq" bigint NOT NULL,
  "alerted" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_withdrawal_waits_due ON cryptopay_withdrawal_waits (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_withdrawal_waits ALTER COLUMN part SET STATISTICS 0;
-- wallet/treasury: the reason to wait that the operator was told of.
ALTER TABLE cryptopay_sweep_notes ADD COLUMN "alerted" text COLLATE "C" NOT NULL DEFAULT '';
-- chain/incoming: deep forks after which settled payouts are looked at again.
CREATE TABLE cryptopay_forks (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "height" bigint NOT NULL,
  "time" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_forks_due ON cryptopay_forks (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_forks ALTER COLUMN part SET STATISTICS 0;
