-- chain/incoming: transfers of contracts that the process which read them does not list, and
-- what is missing from a mempool; the root package: what older versions do not know, and keys.
CREATE TABLE cryptopay_unlisted (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "contract" text COLLATE "C" NOT NULL,
  "coins" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_unlisted_i0 ON cryptopay_unlisted (part, "contract");
CREATE INDEX cryptopay_unlisted_due ON cryptopay_unlisted (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_missing (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "since" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_missing_due ON cryptopay_missing (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_abilities (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "on" bigint NOT NULL,
  "since" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_abilities_due ON cryptopay_abilities (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_fingerprints (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "sum" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_fingerprints_due ON cryptopay_fingerprints (due, part, id) WHERE due > 0;
