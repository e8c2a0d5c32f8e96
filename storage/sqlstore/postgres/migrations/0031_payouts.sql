-- withdrawal: withdrawals that were ordered together.
CREATE TABLE cryptopay_payouts (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "withdrawals" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_payouts_due ON cryptopay_payouts (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_payouts ALTER COLUMN part SET STATISTICS 0;
