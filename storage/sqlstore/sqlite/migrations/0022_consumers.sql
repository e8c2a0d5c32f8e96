-- storage/stream: consumers of events, how far they are, and what they did not handle.
CREATE TABLE IF NOT EXISTS cryptopay_consumers (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "since" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_consumers_due ON cryptopay_consumers (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_consumer_places (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "consumer" TEXT NOT NULL,
  "seen" INTEGER NOT NULL,
  "tries" INTEGER NOT NULL,
  "error" TEXT NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_consumer_places_due ON cryptopay_consumer_places (due, part, id) WHERE due > 0;
CREATE TABLE IF NOT EXISTS cryptopay_dead_letters (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "consumer" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "object" TEXT NOT NULL,
  "kind" TEXT NOT NULL,
  "error" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_dead_letters_i0 ON cryptopay_dead_letters (part, "consumer", "object");
CREATE INDEX IF NOT EXISTS cryptopay_dead_letters_due ON cryptopay_dead_letters (due, part, id) WHERE due > 0;
