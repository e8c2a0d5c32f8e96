-- The unified history is read in one order, by created_at and id: a page goes on behind
-- the last row of the page before.
DROP INDEX cryptopay_activity_i0;
CREATE INDEX cryptopay_activity_i0 ON cryptopay_activity (part, "created_at", "id");
DROP INDEX cryptopay_activity_i1;
CREATE INDEX cryptopay_activity_i1 ON cryptopay_activity (part, "kind", "created_at", "id");
DROP INDEX cryptopay_activity_i2;
CREATE INDEX cryptopay_activity_i2 ON cryptopay_activity (part, "status", "created_at", "id");
DROP INDEX cryptopay_activity_i3;
CREATE INDEX cryptopay_activity_i3 ON cryptopay_activity (part, "currency", "created_at", "id");

-- No statistics of the column part: its average over all tenants says nothing of one.
ALTER TABLE cryptopay_access_tokens ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_activity ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_addresses ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_api_keys ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_application_sequence ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_applications ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_attempts ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_coins ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_cursors ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_deposits ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_events ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_gas_floats ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_gas_reservations ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_idempotency ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_intents ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_listings ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_nonces ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_outcomes ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_payments ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_reservations ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_rides ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_seal_heights ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_seals ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_sightings ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_signed_attempts ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_signed_slots ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_sweeps ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_tenants ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_topups ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_transfers ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_treasury_holdings ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_wallet_sequences ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_wallets ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_webhook_settings ALTER COLUMN part SET STATISTICS 0;
ALTER TABLE cryptopay_withdrawals ALTER COLUMN part SET STATISTICS 0;
