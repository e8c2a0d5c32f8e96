-- storage/stream: consumers of events, how far they are, and what they did not handle.
CREATE TABLE cryptopay_consumers (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "since" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_consumers_due ON cryptopay_consumers (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_consumers ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_consumer_places (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "consumer" text COLLATE "C" NOT NULL,
  "seen" bigint NOT NULL,
  "tries" bigint NOT NULL,
  "error" text COLLATE "C" NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_consumer_places_due ON cryptopay_consumer_places (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_consumer_places ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_dead_letters (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "lease" bigint NOT NULL DEFAULT 0,
  "claims" bigint NOT NULL DEFAULT 0,
  "consumer" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "object" text COLLATE "C" NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "error" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_dead_letters_due ON cryptopay_dead_letters (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_dead_letters_i0 ON cryptopay_dead_letters (part, "consumer", "object");
ALTER TABLE cryptopay_dead_letters ALTER COLUMN part SET STATISTICS 0;
