-- chain/incoming: transfers of contracts that the process which read them does not list, and
-- what is missing from a mempool; the root package: what older versions do not know, and keys.
CREATE TABLE IF NOT EXISTS cryptopay_unlisted (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "contract" TEXT NOT NULL,
  "coins" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_unlisted_i0 ON cryptopay_unlisted (part, "contract");
CREATE INDEX IF NOT EXISTS cryptopay_unlisted_due ON cryptopay_unlisted (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_missing (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_missing_due ON cryptopay_missing (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_abilities (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "on" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_abilities_due ON cryptopay_abilities (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_fingerprints (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "sum" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_fingerprints_due ON cryptopay_fingerprints (due, part, id) WHERE due > 0;
