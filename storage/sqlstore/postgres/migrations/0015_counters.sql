-- storage: counters of what is shown at once.
CREATE TABLE cryptopay_counters (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "value" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_counters_due ON cryptopay_counters (due, part, id) WHERE due > 0;
