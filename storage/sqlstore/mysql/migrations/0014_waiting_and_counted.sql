-- withdrawal: those of a currency and status, by when they began to wait.
CREATE INDEX /*M! IF NOT EXISTS */ cryptopay_withdrawals_i6 ON cryptopay_withdrawals (part, `currency`, `status`, `waiting_since`);
-- treasury: what a reservation took of the day's limit.
ALTER TABLE cryptopay_gas_reservations ADD COLUMN /*M! IF NOT EXISTS */ `counted` bigint NOT NULL DEFAULT 0;
