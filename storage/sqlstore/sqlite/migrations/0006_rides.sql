-- chain/outgoing: withdrawals that the transaction of another one pays.
CREATE TABLE IF NOT EXISTS cryptopay_rides (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "carrier" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_rides_i0 ON cryptopay_rides (part, "carrier");
CREATE INDEX IF NOT EXISTS cryptopay_rides_due ON cryptopay_rides (due, part, id) WHERE due > 0;
