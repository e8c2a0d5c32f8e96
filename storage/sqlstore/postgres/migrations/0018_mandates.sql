-- withdrawal, chain/outgoing, httpapi/auth: what proves that an order was given, and that a credential was made.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "mandate" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_withdrawals ADD COLUMN "approval" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_intents ADD COLUMN "mandate" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cryptopay_applications ADD COLUMN "seal" bytea NOT NULL DEFAULT '';
ALTER TABLE cryptopay_api_keys ADD COLUMN "seal" bytea NOT NULL DEFAULT '';
ALTER TABLE cryptopay_access_tokens ADD COLUMN "seal" bytea NOT NULL DEFAULT '';
