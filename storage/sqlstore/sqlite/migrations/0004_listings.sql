-- What each currency's code stands for in this store, in the system's partition.
CREATE TABLE IF NOT EXISTS cryptopay_listings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "network" TEXT NOT NULL,
  "contract" TEXT NOT NULL,
  "decimals" INTEGER NOT NULL,
  "scale" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_listings_due ON cryptopay_listings (due, part, id) WHERE due > 0;
