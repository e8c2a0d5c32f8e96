-- What each currency's code stands for in this store, in the system's partition.
CREATE TABLE cryptopay_listings (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "contract" text COLLATE "C" NOT NULL,
  "decimals" bigint NOT NULL,
  "scale" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_listings_due ON cryptopay_listings (due, part, id) WHERE due > 0;
