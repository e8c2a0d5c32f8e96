-- withdrawal, chain/outgoing, httpapi/auth: what proves that an order was given, and that a credential was made.
ALTER TABLE cryptopay_withdrawals ADD COLUMN "mandate" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_withdrawals ADD COLUMN "approval" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_intents ADD COLUMN "mandate" TEXT NOT NULL DEFAULT '';
ALTER TABLE cryptopay_applications ADD COLUMN "seal" BLOB NOT NULL DEFAULT x'';
ALTER TABLE cryptopay_api_keys ADD COLUMN "seal" BLOB NOT NULL DEFAULT x'';
ALTER TABLE cryptopay_access_tokens ADD COLUMN "seal" BLOB NOT NULL DEFAULT x'';
