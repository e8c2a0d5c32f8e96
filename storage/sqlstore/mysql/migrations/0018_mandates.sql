-- withdrawal, chain/outgoing, httpapi/auth: what proves that an order was given, and that a credential was made.
ALTER TABLE cryptopay_withdrawals ADD COLUMN /*M! IF NOT EXISTS */ `mandate` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_withdrawals ADD COLUMN /*M! IF NOT EXISTS */ `approval` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_intents ADD COLUMN /*M! IF NOT EXISTS */ `mandate` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_applications ADD COLUMN /*M! IF NOT EXISTS */ `seal` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_api_keys ADD COLUMN /*M! IF NOT EXISTS */ `seal` longblob NOT NULL DEFAULT ('');
ALTER TABLE cryptopay_access_tokens ADD COLUMN /*M! IF NOT EXISTS */ `seal` longblob NOT NULL DEFAULT ('');
