-- payment: the open payments of a currency, over all tenants.
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_payments_a0 ON cryptopay_payments (`currency`, `status`, `created_at`);
