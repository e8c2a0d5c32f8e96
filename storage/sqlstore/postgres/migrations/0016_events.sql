-- storage: what Changes tell of, and the number of each partition's newest event.
CREATE TABLE cryptopay_stream_events (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "kind" text COLLATE "C" NOT NULL,
  "object" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  "data" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_stream_events_due ON cryptopay_stream_events (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_stream_events ALTER COLUMN part SET STATISTICS 0;
CREATE TABLE cryptopay_streams (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "last" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_streams_due ON cryptopay_streams (due, part, id) WHERE due > 0;
ALTER TABLE cryptopay_streams ALTER COLUMN part SET STATISTICS 0;
-- As in 0006, for the table of 0015.
ALTER TABLE cryptopay_counters ALTER COLUMN part SET STATISTICS 0;
