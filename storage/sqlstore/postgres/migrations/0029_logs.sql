-- webhook: deliveries by time, and by type and time.
CREATE INDEX cryptopay_events_i1 ON cryptopay_events (part, "created_at");
CREATE INDEX cryptopay_events_i2 ON cryptopay_events (part, "type", "created_at");
-- refund: refunds by status and time.
CREATE INDEX cryptopay_refunds_i3 ON cryptopay_refunds (part, "status", "created_at");
-- house: a person was told that a payment waits.
ALTER TABLE cryptopay_house_payments ADD COLUMN "waits_long" bigint NOT NULL DEFAULT 0;
