-- payment: what a merchant calls a payment is asked for by filters of the list.
ALTER TABLE cryptopay_payments MODIFY `custom_id` varbinary(500) NOT NULL;
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_payments_i3 ON cryptopay_payments (part, `order_id`, `created_at`);
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_payments_i4 ON cryptopay_payments (part, `custom_id`, `created_at`);
-- payment: how many webhooks told of a deposit.
ALTER TABLE cryptopay_deposits ADD COLUMN /*M! IF NOT EXISTS */ `told` bigint NOT NULL DEFAULT 0;
