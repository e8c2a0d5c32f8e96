-- httpapi/auth, in the system's partition: who may use the interface. A file that a
-- host made them in has them already.
CREATE TABLE IF NOT EXISTS cryptopay_applications (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "number" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "scopes" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "secret_hash" BLOB NOT NULL,
  "masked_secret" TEXT NOT NULL,
  "secret_made" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_applications_u0 ON cryptopay_applications (part, "number");
CREATE INDEX IF NOT EXISTS cryptopay_applications_i0 ON cryptopay_applications (part, "tenant", "number");
CREATE INDEX IF NOT EXISTS cryptopay_applications_due ON cryptopay_applications (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_access_tokens (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "client_id" TEXT NOT NULL,
  "application" INTEGER NOT NULL,
  "scopes" TEXT NOT NULL,
  "revoked" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "expires_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_access_tokens_due ON cryptopay_access_tokens (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_api_keys (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "key_id" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "scopes" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "masked_key" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_api_keys_u0 ON cryptopay_api_keys (part, "key_id");
CREATE INDEX IF NOT EXISTS cryptopay_api_keys_i0 ON cryptopay_api_keys (part, "tenant", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_api_keys_due ON cryptopay_api_keys (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_application_sequence (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last_number" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_application_sequence_due ON cryptopay_application_sequence (due, part, id) WHERE due > 0;
