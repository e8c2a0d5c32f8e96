-- webhook: deliveries by time, and by type and time.
ALTER TABLE cryptopay_events MODIFY `type` varbinary(500) NOT NULL;
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_events_i1 ON cryptopay_events (part, `created_at`);
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_events_i2 ON cryptopay_events (part, `type`, `created_at`);
-- refund: refunds by status and time.
ALTER TABLE cryptopay_refunds MODIFY `status` varbinary(500) NOT NULL;
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_refunds_i3 ON cryptopay_refunds (part, `status`, `created_at`);
-- house: a person was told that a payment waits.
ALTER TABLE cryptopay_house_payments ADD COLUMN /*M! IF NOT EXISTS */ `waits_long` bigint NOT NULL DEFAULT 0;
