-- treasury: the largest reservation of gas that was refused.
ALTER TABLE cryptopay_gas_floats ADD COLUMN /*M! IF NOT EXISTS */ `lacking` bigint NOT NULL DEFAULT 0;
