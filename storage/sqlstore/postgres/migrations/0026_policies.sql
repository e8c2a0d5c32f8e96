-- policy: what a tenant's payouts are held to, what went out by its rules, and where to.
CREATE TABLE cryptopay_policies (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "number" bigint NOT NULL,
  "rules" text COLLATE "C" NOT NULL,
  "actor" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  "seal" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_policies_i0 ON cryptopay_policies (part, "number");
CREATE INDEX cryptopay_policies_due ON cryptopay_policies (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_policies ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_policy_uses (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "rule" text COLLATE "C" NOT NULL,
  "slots" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_policy_uses_due ON cryptopay_policy_uses (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_policy_uses ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_policy_destinations (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "network" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "actor" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  "removed_at" bigint NOT NULL,
  "seal" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_policy_destinations_i0 ON cryptopay_policy_destinations (part, "at");
CREATE INDEX cryptopay_policy_destinations_due ON cryptopay_policy_destinations (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_policy_destinations ALTER COLUMN part SET STATISTICS 0;
