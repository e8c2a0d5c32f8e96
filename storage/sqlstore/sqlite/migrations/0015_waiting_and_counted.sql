-- withdrawal: those of a currency and status, by when they began to wait.
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i6 ON cryptopay_withdrawals (part, "currency", "status", "waiting_since");
-- treasury: what a reservation took of the day's limit.
ALTER TABLE cryptopay_gas_reservations ADD COLUMN "counted" INTEGER NOT NULL DEFAULT 0;
