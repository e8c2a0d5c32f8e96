-- treasury: the largest reservation of gas that was refused.
ALTER TABLE cryptopay_gas_floats ADD COLUMN "lacking" INTEGER NOT NULL DEFAULT 0;
