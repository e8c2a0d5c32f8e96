-- chain/incoming: what addresses held of the native coin, when all of it was explained.
CREATE TABLE IF NOT EXISTS cryptopay_holdings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "amount" TEXT NOT NULL,
  "nonce" INTEGER NOT NULL,
  "height" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_holdings_i0 ON cryptopay_holdings (part, "height");
CREATE INDEX IF NOT EXISTS cryptopay_holdings_due ON cryptopay_holdings (due, part, id) WHERE due > 0;
