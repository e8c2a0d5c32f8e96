-- payment: what a merchant calls a payment is asked for by filters of the list.
CREATE INDEX cryptopay_payments_i3 ON cryptopay_payments (part, "order_id", "created_at");
CREATE INDEX cryptopay_payments_i4 ON cryptopay_payments (part, "custom_id", "created_at");
-- payment: how many webhooks told of a deposit.
ALTER TABLE cryptopay_deposits ADD COLUMN "told" bigint NOT NULL DEFAULT 0;
