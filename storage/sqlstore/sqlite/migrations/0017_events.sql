-- storage: what Changes tell of, and the number of each partition's newest event.
CREATE TABLE IF NOT EXISTS cryptopay_stream_events (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "object" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "data" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_stream_events_due ON cryptopay_stream_events (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_streams (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_streams_due ON cryptopay_streams (due, part, id) WHERE due > 0;
