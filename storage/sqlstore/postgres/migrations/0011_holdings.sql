-- chain/incoming: what addresses held of the native coin, when all of it was explained.
CREATE TABLE cryptopay_holdings (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "amount" text COLLATE "C" NOT NULL,
  "nonce" bigint NOT NULL,
  "height" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_holdings_i0 ON cryptopay_holdings (part, "height");
CREATE INDEX cryptopay_holdings_due ON cryptopay_holdings (due, part, id) WHERE due > 0;
