-- refill: transactions of cold coins that a person signs elsewhere.
CREATE TABLE cryptopay_refill_proposals (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "proposal_id" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "from_address" text COLLATE "C" NOT NULL,
  "to_address" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "fee" bigint NOT NULL,
  "inputs" text COLLATE "C" NOT NULL,
  "outputs" text COLLATE "C" NOT NULL,
  "payload" bytea NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "seal" text COLLATE "C" NOT NULL,
  "raw" bytea NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "requested_by" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_refill_proposals_i0 ON cryptopay_refill_proposals (part, "currency", "number");
CREATE INDEX cryptopay_refill_proposals_i1 ON cryptopay_refill_proposals (part, "tx");
CREATE INDEX cryptopay_refill_proposals_i2 ON cryptopay_refill_proposals (part, "created_at");
CREATE INDEX cryptopay_refill_proposals_due ON cryptopay_refill_proposals (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_refill_proposals ALTER COLUMN part SET STATISTICS 0;
