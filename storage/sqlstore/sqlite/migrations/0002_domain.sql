-- One table per declaration of the domains. A row's first five columns are the
-- store's: its partition, id, version, the Change that wrote it, and when it is
-- due (0 = never). Times are µs since 1970 UTC, amounts 64-bit integers, exact
-- decimals and JSON text. Files from before this migration have these tables
-- already, hence IF NOT EXISTS.

-- chain/incoming, by network: what happened at our addresses, the addresses, and
-- how far each chain was read.
CREATE TABLE IF NOT EXISTS cryptopay_sightings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "network" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "ordinal" INTEGER NOT NULL,
  "generation" INTEGER NOT NULL,
  "state" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "purpose" TEXT NOT NULL,
  "from_address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "contract" TEXT NOT NULL,
  "exact" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "height" INTEGER NOT NULL,
  "block_hash" TEXT NOT NULL,
  "block_time" INTEGER NOT NULL,
  "final_at" INTEGER NOT NULL,
  "first_seen" INTEGER NOT NULL,
  "inherited_from" TEXT NOT NULL,
  "spends" TEXT NOT NULL,
  "internal" INTEGER NOT NULL,
  "unproven" INTEGER NOT NULL,
  "forward" TEXT NOT NULL,
  "forward_tx" TEXT NOT NULL,
  "forward_fee" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_sightings_i0 ON cryptopay_sightings (part, "state", "final_at");
CREATE INDEX IF NOT EXISTS cryptopay_sightings_i1 ON cryptopay_sightings (part, "address", "state");
CREATE INDEX IF NOT EXISTS cryptopay_sightings_i2 ON cryptopay_sightings (part, "forward", "state");
CREATE INDEX IF NOT EXISTS cryptopay_sightings_i3 ON cryptopay_sightings (part, "tx");
CREATE INDEX IF NOT EXISTS cryptopay_sightings_due ON cryptopay_sightings (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_addresses (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "seq" INTEGER NOT NULL,
  "key_index" INTEGER NOT NULL,
  "key_ref" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "use_for" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "watch_until" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_addresses_u0 ON cryptopay_addresses (part, "seq");
CREATE INDEX IF NOT EXISTS cryptopay_addresses_i0 ON cryptopay_addresses (part, "tenant", "use_for");
CREATE INDEX IF NOT EXISTS cryptopay_addresses_due ON cryptopay_addresses (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_cursors (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "trail" TEXT NOT NULL,
  "head" INTEGER NOT NULL,
  "final" INTEGER NOT NULL,
  "tip_read" INTEGER NOT NULL,
  "head_time" INTEGER NOT NULL,
  "halted" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_cursors_due ON cryptopay_cursors (due, part, id) WHERE due > 0;

-- chain/outgoing, by network: what is to be paid, each signed transaction, and
-- the nonces and coins that they use.
CREATE TABLE IF NOT EXISTS cryptopay_intents (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "purpose" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "from_address" TEXT NOT NULL,
  "from_key" TEXT NOT NULL,
  "to_address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "all_funds" INTEGER NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "confirmations" INTEGER NOT NULL,
  "state" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "attempts" INTEGER NOT NULL,
  "tx" TEXT NOT NULL,
  "nonce" INTEGER NOT NULL,
  "plan" BLOB NOT NULL,
  "filling" INTEGER NOT NULL,
  "reached" INTEGER NOT NULL,
  "reserved" INTEGER NOT NULL,
  "tries" INTEGER NOT NULL,
  "bump_at" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_intents_i0 ON cryptopay_intents (part, "tenant", "state");
CREATE INDEX IF NOT EXISTS cryptopay_intents_i1 ON cryptopay_intents (part, "state");
CREATE INDEX IF NOT EXISTS cryptopay_intents_i2 ON cryptopay_intents (part, "from_address", "nonce");
CREATE INDEX IF NOT EXISTS cryptopay_intents_due ON cryptopay_intents (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_attempts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "purpose" TEXT NOT NULL,
  "raw" BLOB NOT NULL,
  "nonce" INTEGER NOT NULL,
  "spends" TEXT NOT NULL,
  "outputs" TEXT NOT NULL,
  "coins" TEXT NOT NULL,
  "change_to" TEXT NOT NULL,
  "fee" TEXT NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "fate" TEXT NOT NULL,
  "rejected" INTEGER NOT NULL,
  "stored_at" INTEGER NOT NULL,
  "sent_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_attempts_i0 ON cryptopay_attempts (part, "intent", "number");
CREATE INDEX IF NOT EXISTS cryptopay_attempts_due ON cryptopay_attempts (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_reservations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_reservations_i0 ON cryptopay_reservations (part, "intent");
CREATE INDEX IF NOT EXISTS cryptopay_reservations_due ON cryptopay_reservations (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_nonces (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "next_nonce" INTEGER NOT NULL,
  "holder" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_nonces_due ON cryptopay_nonces (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_coins (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "key_ref" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "state" TEXT NOT NULL,
  "intent" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_coins_i0 ON cryptopay_coins (part, "tenant", "state", "amount");
CREATE INDEX IF NOT EXISTS cryptopay_coins_due ON cryptopay_coins (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_outcomes (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "purpose" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "state" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "confirmations" INTEGER NOT NULL,
  "amount" INTEGER NOT NULL,
  "cost" INTEGER NOT NULL,
  "cost_tx" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_outcomes_i0 ON cryptopay_outcomes (part, "tenant", "state");
CREATE INDEX IF NOT EXISTS cryptopay_outcomes_due ON cryptopay_outcomes (due, part, id) WHERE due > 0;

-- chain/keys, by network: what a signer has signed.
CREATE TABLE IF NOT EXISTS cryptopay_signed_attempts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "payload" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_signed_attempts_due ON cryptopay_signed_attempts (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_signed_slots (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_signed_slots_due ON cryptopay_signed_slots (due, part, id) WHERE due > 0;

-- payment, by tenant.
CREATE TABLE IF NOT EXISTS cryptopay_payments (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "payment_id" TEXT NOT NULL,
  "status" TEXT NOT NULL,
  "payment_type" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "token" TEXT NOT NULL,
  "scale" INTEGER NOT NULL,
  "price_amount" TEXT NOT NULL,
  "price_currency" TEXT NOT NULL,
  "amount_crypto" INTEGER NOT NULL,
  "tolerance" INTEGER NOT NULL,
  "rate" TEXT NOT NULL,
  "usd_rate" TEXT NOT NULL,
  "is_fixed_rate" INTEGER NOT NULL,
  "is_fee_paid_by_user" INTEGER NOT NULL,
  "fee_percent" TEXT NOT NULL,
  "network_fee" INTEGER NOT NULL,
  "received" INTEGER NOT NULL,
  "net" INTEGER NOT NULL,
  "platform" INTEGER NOT NULL,
  "network_taken" INTEGER NOT NULL,
  "received_value" TEXT NOT NULL,
  "live" INTEGER NOT NULL,
  "tx_hash" TEXT NOT NULL,
  "confirmations" INTEGER NOT NULL,
  "wallet" TEXT NOT NULL,
  "wallet_ref" TEXT NOT NULL,
  "order_id" TEXT NOT NULL,
  "order_description" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "custom_id" TEXT NOT NULL,
  "customer_email" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "expires_at" INTEGER NOT NULL,
  "confirmed_at" INTEGER NOT NULL,
  "closed" INTEGER NOT NULL,
  "cancelled" INTEGER NOT NULL,
  "events" INTEGER NOT NULL,
  "watched_until" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_payments_u0 ON cryptopay_payments (part, "network", "address");
CREATE INDEX IF NOT EXISTS cryptopay_payments_i0 ON cryptopay_payments (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_payments_i1 ON cryptopay_payments (part, "status", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_payments_i2 ON cryptopay_payments (part, "currency", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_payments_i3 ON cryptopay_payments (part, "order_id");
CREATE INDEX IF NOT EXISTS cryptopay_payments_due ON cryptopay_payments (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_deposits (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "deposit_id" TEXT NOT NULL,
  "payment" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "booking" TEXT NOT NULL,
  "state" TEXT NOT NULL,
  "proven" INTEGER NOT NULL,
  "given_up" INTEGER NOT NULL,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "ordinal" INTEGER NOT NULL,
  "generation" INTEGER NOT NULL,
  "from_address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "contract" TEXT NOT NULL,
  "exact" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "rate" TEXT NOT NULL,
  "weight" INTEGER NOT NULL,
  "wallet" TEXT NOT NULL,
  "net" INTEGER NOT NULL,
  "platform" INTEGER NOT NULL,
  "network_taken" INTEGER NOT NULL,
  "owed" INTEGER NOT NULL,
  "height" INTEGER NOT NULL,
  "block_time" INTEGER NOT NULL,
  "first_seen" INTEGER NOT NULL,
  "confirmations" INTEGER NOT NULL,
  "fact_version" INTEGER NOT NULL,
  "forward" TEXT NOT NULL,
  "forward_tx" TEXT NOT NULL,
  "forward_fee" TEXT NOT NULL,
  "merged" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_deposits_i0 ON cryptopay_deposits (part, "payment");
CREATE INDEX IF NOT EXISTS cryptopay_deposits_i1 ON cryptopay_deposits (part, "network", "address");
CREATE INDEX IF NOT EXISTS cryptopay_deposits_i2 ON cryptopay_deposits (part, "booking", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_deposits_due ON cryptopay_deposits (due, part, id) WHERE due > 0;

-- withdrawal, by tenant.
CREATE TABLE IF NOT EXISTS cryptopay_withdrawals (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "custom_id" TEXT NOT NULL,
  "wallet" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "token" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "sent_memo" TEXT NOT NULL,
  "requested" INTEGER NOT NULL,
  "amount" INTEGER NOT NULL,
  "platform_fee" INTEGER NOT NULL,
  "network_fee" INTEGER NOT NULL,
  "amount_rank" INTEGER NOT NULL,
  "status" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "confirmations" INTEGER NOT NULL,
  "required_confirmations" INTEGER NOT NULL,
  "batch_id" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "stage" TEXT NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "review" TEXT NOT NULL,
  "frozen" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "outcome_at" INTEGER NOT NULL,
  "counter" TEXT NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "processed_at" INTEGER NOT NULL,
  "completed_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i0 ON cryptopay_withdrawals (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i1 ON cryptopay_withdrawals (part, "status", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i2 ON cryptopay_withdrawals (part, "currency", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i3 ON cryptopay_withdrawals (part, "custom_id");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i4 ON cryptopay_withdrawals (part, "amount_rank");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_i5 ON cryptopay_withdrawals (part, "counter");
CREATE INDEX IF NOT EXISTS cryptopay_withdrawals_due ON cryptopay_withdrawals (due, part, id) WHERE due > 0;

-- wallet: the directory of tenants, and by tenant its wallets and transfers.
CREATE TABLE IF NOT EXISTS cryptopay_tenants (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "name" TEXT NOT NULL,
  "transaction_fee" TEXT NOT NULL,
  "fee_paid_by_user" INTEGER NOT NULL,
  "withdrawal_percent" TEXT NOT NULL,
  "withdrawal_flat" TEXT NOT NULL,
  "withdrawal_flats" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_tenants_i0 ON cryptopay_tenants (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_tenants_due ON cryptopay_tenants (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_wallets (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "number" INTEGER NOT NULL,
  "name" TEXT NOT NULL,
  "external_id" TEXT NOT NULL,
  "external_key" TEXT NOT NULL,
  "closed" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_wallets_u0 ON cryptopay_wallets (part, "number");
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_wallets_u1 ON cryptopay_wallets (part, "external_key");
CREATE INDEX IF NOT EXISTS cryptopay_wallets_i0 ON cryptopay_wallets (part, "closed", "number");
CREATE INDEX IF NOT EXISTS cryptopay_wallets_due ON cryptopay_wallets (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_transfers (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "wallet" TEXT NOT NULL,
  "external_id" TEXT NOT NULL,
  "transfer_type" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "status" TEXT NOT NULL,
  "error" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "completed_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_transfers_i0 ON cryptopay_transfers (part, "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_transfers_i1 ON cryptopay_transfers (part, "wallet", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_transfers_i2 ON cryptopay_transfers (part, "status", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_transfers_due ON cryptopay_transfers (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_wallet_sequences (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last_number" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_wallet_sequences_due ON cryptopay_wallet_sequences (due, part, id) WHERE due > 0;

-- wallet/treasury, by tenant and network: the operator's own coins, and deposits
-- on their way to a hot address.
CREATE TABLE IF NOT EXISTS cryptopay_gas_floats (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "asset" TEXT NOT NULL,
  "reserved" INTEGER NOT NULL,
  "in_flight" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_gas_floats_due ON cryptopay_gas_floats (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_gas_reservations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "asset" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  "open" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_gas_reservations_due ON cryptopay_gas_reservations (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_topups (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tx" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_topups_due ON cryptopay_topups (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_sweeps (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "key_ref" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "deposits" TEXT NOT NULL,
  "state" TEXT NOT NULL,
  "fundings" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_sweeps_i0 ON cryptopay_sweeps (part, "address", "currency");
CREATE INDEX IF NOT EXISTS cryptopay_sweeps_i1 ON cryptopay_sweeps (part, "state");
CREATE INDEX IF NOT EXISTS cryptopay_sweeps_due ON cryptopay_sweeps (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_treasury_holdings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "place" TEXT NOT NULL,
  "holder" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "external_id" TEXT NOT NULL,
  "active" INTEGER NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" TEXT NOT NULL,
  "read_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_treasury_holdings_due ON cryptopay_treasury_holdings (due, part, id) WHERE due > 0;

-- webhook, by tenant: the outbox and its settings.
CREATE TABLE IF NOT EXISTS cryptopay_events (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "type" TEXT NOT NULL,
  "object" TEXT NOT NULL,
  "seq" INTEGER NOT NULL,
  "url" TEXT NOT NULL,
  "body" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "status" TEXT NOT NULL,
  "attempts" INTEGER NOT NULL,
  "response" INTEGER NOT NULL,
  "error" TEXT NOT NULL,
  "done_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS cryptopay_events_u0 ON cryptopay_events (part, "object", "seq");
CREATE INDEX IF NOT EXISTS cryptopay_events_i0 ON cryptopay_events (part, "status", "created_at");
CREATE INDEX IF NOT EXISTS cryptopay_events_due ON cryptopay_events (due, part, id) WHERE due > 0;

CREATE TABLE IF NOT EXISTS cryptopay_webhook_settings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "url" TEXT NOT NULL,
  "events" TEXT NOT NULL,
  "shown" INTEGER NOT NULL,
  "generation" INTEGER NOT NULL,
  "sealed" BLOB NOT NULL,
  "masked" TEXT NOT NULL,
  "previous" BLOB NOT NULL,
  "previous_end" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX IF NOT EXISTS cryptopay_webhook_settings_due ON cryptopay_webhook_settings (due, part, id) WHERE due > 0;

