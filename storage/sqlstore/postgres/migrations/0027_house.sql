-- house: payments of fees and float to the host's own addresses.
CREATE TABLE cryptopay_house_payments (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "payment_id" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "source" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "all_funds" bigint NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "stage" text COLLATE "C" NOT NULL,
  "max_cost" bigint NOT NULL,
  "waiting" text COLLATE "C" NOT NULL,
  "waiting_since" bigint NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "outcome_at" bigint NOT NULL,
  "requested_by" text COLLATE "C" NOT NULL,
  "mandate" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "completed_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_house_payments_i0 ON cryptopay_house_payments (part, "created_at");
CREATE INDEX cryptopay_house_payments_i1 ON cryptopay_house_payments (part, "status", "created_at");
CREATE INDEX cryptopay_house_payments_due ON cryptopay_house_payments (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_house_payments ALTER COLUMN part SET STATISTICS 0;
