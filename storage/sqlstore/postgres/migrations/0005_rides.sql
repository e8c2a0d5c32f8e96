-- chain/outgoing: withdrawals that the transaction of another one pays.
CREATE TABLE cryptopay_rides (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "carrier" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_rides_i0 ON cryptopay_rides (part, "carrier");
CREATE INDEX cryptopay_rides_due ON cryptopay_rides (due, part, id) WHERE due > 0;
