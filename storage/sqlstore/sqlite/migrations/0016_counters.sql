-- storage: counters of what is shown at once.
CREATE TABLE IF NOT EXISTS cryptopay_counters (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "value" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_counters_due ON cryptopay_counters (due, part, id) WHERE due > 0;
