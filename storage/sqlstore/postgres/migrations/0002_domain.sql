-- One table per declaration of the domains. A row's first five columns are the
-- store's: its partition, id, version, the Change that wrote it, and when it is
-- due (0 = never). Times are µs since 1970 UTC, amounts 64-bit integers, exact
-- decimals and JSON text.

-- chain/incoming, by network: what happened at our addresses, the addresses, and
-- how far each chain was read.
CREATE TABLE cryptopay_sightings (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "ordinal" bigint NOT NULL,
  "generation" bigint NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "purpose" text COLLATE "C" NOT NULL,
  "from_address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "contract" text COLLATE "C" NOT NULL,
  "exact" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "height" bigint NOT NULL,
  "block_hash" text COLLATE "C" NOT NULL,
  "block_time" bigint NOT NULL,
  "final_at" bigint NOT NULL,
  "first_seen" bigint NOT NULL,
  "inherited_from" text COLLATE "C" NOT NULL,
  "spends" text COLLATE "C" NOT NULL,
  "internal" bigint NOT NULL,
  "unproven" bigint NOT NULL,
  "forward" text COLLATE "C" NOT NULL,
  "forward_tx" text COLLATE "C" NOT NULL,
  "forward_fee" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_sightings_i0 ON cryptopay_sightings (part, "state", "final_at");
CREATE INDEX cryptopay_sightings_i1 ON cryptopay_sightings (part, "address", "state");
CREATE INDEX cryptopay_sightings_i2 ON cryptopay_sightings (part, "forward", "state");
CREATE INDEX cryptopay_sightings_i3 ON cryptopay_sightings (part, "tx");
CREATE INDEX cryptopay_sightings_due ON cryptopay_sightings (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_addresses (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "seq" bigint NOT NULL,
  "key_index" bigint NOT NULL,
  "key_ref" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "use_for" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "watch_until" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_addresses_u0 ON cryptopay_addresses (part, "seq");
CREATE INDEX cryptopay_addresses_i0 ON cryptopay_addresses (part, "tenant", "use_for");
CREATE INDEX cryptopay_addresses_due ON cryptopay_addresses (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_cursors (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "trail" text COLLATE "C" NOT NULL,
  "head" bigint NOT NULL,
  "final" bigint NOT NULL,
  "tip_read" bigint NOT NULL,
  "head_time" bigint NOT NULL,
  "halted" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_cursors_due ON cryptopay_cursors (due, part, id) WHERE due > 0;

-- chain/outgoing, by network: what is to be paid, each signed transaction, and
-- the nonces and coins that they use.
CREATE TABLE cryptopay_intents (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "purpose" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "from_address" text COLLATE "C" NOT NULL,
  "from_key" text COLLATE "C" NOT NULL,
  "to_address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "all_funds" bigint NOT NULL,
  "max_cost" bigint NOT NULL,
  "confirmations" bigint NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "attempts" bigint NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "nonce" bigint NOT NULL,
  "plan" bytea NOT NULL,
  "filling" bigint NOT NULL,
  "reached" bigint NOT NULL,
  "reserved" bigint NOT NULL,
  "tries" bigint NOT NULL,
  "bump_at" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_intents_i0 ON cryptopay_intents (part, "tenant", "state");
CREATE INDEX cryptopay_intents_i1 ON cryptopay_intents (part, "state");
CREATE INDEX cryptopay_intents_i2 ON cryptopay_intents (part, "from_address", "nonce");
CREATE INDEX cryptopay_intents_due ON cryptopay_intents (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_attempts (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  "number" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "purpose" text COLLATE "C" NOT NULL,
  "raw" bytea NOT NULL,
  "nonce" bigint NOT NULL,
  "spends" text COLLATE "C" NOT NULL,
  "outputs" text COLLATE "C" NOT NULL,
  "coins" text COLLATE "C" NOT NULL,
  "change_to" text COLLATE "C" NOT NULL,
  "fee" text COLLATE "C" NOT NULL,
  "max_cost" bigint NOT NULL,
  "fate" text COLLATE "C" NOT NULL,
  "rejected" bigint NOT NULL,
  "stored_at" bigint NOT NULL,
  "sent_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_attempts_i0 ON cryptopay_attempts (part, "intent", "number");
CREATE INDEX cryptopay_attempts_due ON cryptopay_attempts (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_reservations (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_reservations_i0 ON cryptopay_reservations (part, "intent");
CREATE INDEX cryptopay_reservations_due ON cryptopay_reservations (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_nonces (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "next_nonce" bigint NOT NULL,
  "holder" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_nonces_due ON cryptopay_nonces (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_coins (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "key_ref" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_coins_i0 ON cryptopay_coins (part, "tenant", "state", "amount");
CREATE INDEX cryptopay_coins_due ON cryptopay_coins (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_outcomes (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  "purpose" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "confirmations" bigint NOT NULL,
  "amount" bigint NOT NULL,
  "cost" bigint NOT NULL,
  "cost_tx" text COLLATE "C" NOT NULL,
  "at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_outcomes_i0 ON cryptopay_outcomes (part, "tenant", "state");
CREATE INDEX cryptopay_outcomes_due ON cryptopay_outcomes (due, part, id) WHERE due > 0;

-- chain/keys, by network: what a signer has signed.
CREATE TABLE cryptopay_signed_attempts (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  "payload" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_signed_attempts_due ON cryptopay_signed_attempts (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_signed_slots (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "intent" text COLLATE "C" NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_signed_slots_due ON cryptopay_signed_slots (due, part, id) WHERE due > 0;

-- payment, by tenant.
CREATE TABLE cryptopay_payments (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "payment_id" text COLLATE "C" NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "payment_type" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "token" text COLLATE "C" NOT NULL,
  "scale" bigint NOT NULL,
  "price_amount" text COLLATE "C" NOT NULL,
  "price_currency" text COLLATE "C" NOT NULL,
  "amount_crypto" bigint NOT NULL,
  "tolerance" bigint NOT NULL,
  "rate" text COLLATE "C" NOT NULL,
  "usd_rate" text COLLATE "C" NOT NULL,
  "is_fixed_rate" bigint NOT NULL,
  "is_fee_paid_by_user" bigint NOT NULL,
  "fee_percent" text COLLATE "C" NOT NULL,
  "network_fee" bigint NOT NULL,
  "received" bigint NOT NULL,
  "net" bigint NOT NULL,
  "platform" bigint NOT NULL,
  "network_taken" bigint NOT NULL,
  "received_value" text COLLATE "C" NOT NULL,
  "live" bigint NOT NULL,
  "tx_hash" text COLLATE "C" NOT NULL,
  "confirmations" bigint NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "wallet_ref" text COLLATE "C" NOT NULL,
  "order_id" text COLLATE "C" NOT NULL,
  "order_description" text COLLATE "C" NOT NULL,
  "callback_url" text COLLATE "C" NOT NULL,
  "custom_id" text COLLATE "C" NOT NULL,
  "customer_email" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL,
  "confirmed_at" bigint NOT NULL,
  "closed" bigint NOT NULL,
  "cancelled" bigint NOT NULL,
  "events" bigint NOT NULL,
  "watched_until" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, "network", "address");
CREATE INDEX cryptopay_payments_i0 ON cryptopay_payments (part, "created_at");
CREATE INDEX cryptopay_payments_i1 ON cryptopay_payments (part, "status", "created_at");
CREATE INDEX cryptopay_payments_i2 ON cryptopay_payments (part, "currency", "created_at");
CREATE INDEX cryptopay_payments_i3 ON cryptopay_payments (part, "order_id");
CREATE INDEX cryptopay_payments_due ON cryptopay_payments (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_deposits (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "deposit_id" text COLLATE "C" NOT NULL,
  "payment" text COLLATE "C" NOT NULL,
  "role" text COLLATE "C" NOT NULL,
  "booking" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "proven" bigint NOT NULL,
  "given_up" bigint NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "ordinal" bigint NOT NULL,
  "generation" bigint NOT NULL,
  "from_address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "contract" text COLLATE "C" NOT NULL,
  "exact" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "rate" text COLLATE "C" NOT NULL,
  "weight" bigint NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "net" bigint NOT NULL,
  "platform" bigint NOT NULL,
  "network_taken" bigint NOT NULL,
  "owed" bigint NOT NULL,
  "height" bigint NOT NULL,
  "block_time" bigint NOT NULL,
  "first_seen" bigint NOT NULL,
  "confirmations" bigint NOT NULL,
  "fact_version" bigint NOT NULL,
  "forward" text COLLATE "C" NOT NULL,
  "forward_tx" text COLLATE "C" NOT NULL,
  "forward_fee" text COLLATE "C" NOT NULL,
  "merged" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_deposits_i0 ON cryptopay_deposits (part, "payment");
CREATE INDEX cryptopay_deposits_i1 ON cryptopay_deposits (part, "network", "address");
CREATE INDEX cryptopay_deposits_i2 ON cryptopay_deposits (part, "booking", "created_at");
CREATE INDEX cryptopay_deposits_due ON cryptopay_deposits (due, part, id) WHERE due > 0;

-- withdrawal, by tenant.
CREATE TABLE cryptopay_withdrawals (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "custom_id" text COLLATE "C" NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "token" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "memo" text COLLATE "C" NOT NULL,
  "sent_memo" text COLLATE "C" NOT NULL,
  "requested" bigint NOT NULL,
  "amount" bigint NOT NULL,
  "platform_fee" bigint NOT NULL,
  "network_fee" bigint NOT NULL,
  "amount_rank" bigint NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "confirmations" bigint NOT NULL,
  "required_confirmations" bigint NOT NULL,
  "batch_id" text COLLATE "C" NOT NULL,
  "callback_url" text COLLATE "C" NOT NULL,
  "stage" text COLLATE "C" NOT NULL,
  "max_cost" bigint NOT NULL,
  "review" text COLLATE "C" NOT NULL,
  "frozen" bigint NOT NULL,
  "waiting" text COLLATE "C" NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "outcome_at" bigint NOT NULL,
  "counter" text COLLATE "C" NOT NULL,
  "event_seq" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "processed_at" bigint NOT NULL,
  "completed_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_withdrawals_i0 ON cryptopay_withdrawals (part, "created_at");
CREATE INDEX cryptopay_withdrawals_i1 ON cryptopay_withdrawals (part, "status", "created_at");
CREATE INDEX cryptopay_withdrawals_i2 ON cryptopay_withdrawals (part, "currency", "created_at");
CREATE INDEX cryptopay_withdrawals_i3 ON cryptopay_withdrawals (part, "custom_id");
CREATE INDEX cryptopay_withdrawals_i4 ON cryptopay_withdrawals (part, "amount_rank");
CREATE INDEX cryptopay_withdrawals_i5 ON cryptopay_withdrawals (part, "counter");
CREATE INDEX cryptopay_withdrawals_due ON cryptopay_withdrawals (due, part, id) WHERE due > 0;

-- wallet: the directory of tenants, and by tenant its wallets and transfers.
CREATE TABLE cryptopay_tenants (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "transaction_fee" text COLLATE "C" NOT NULL,
  "fee_paid_by_user" bigint NOT NULL,
  "withdrawal_percent" text COLLATE "C" NOT NULL,
  "withdrawal_flat" text COLLATE "C" NOT NULL,
  "withdrawal_flats" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_tenants_i0 ON cryptopay_tenants (part, "created_at");
CREATE INDEX cryptopay_tenants_due ON cryptopay_tenants (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_wallets (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "number" bigint NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "external_id" text COLLATE "C" NOT NULL,
  "external_key" text COLLATE "C" NOT NULL,
  "closed" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_wallets_u0 ON cryptopay_wallets (part, "number");
CREATE UNIQUE INDEX cryptopay_wallets_u1 ON cryptopay_wallets (part, "external_key");
CREATE INDEX cryptopay_wallets_i0 ON cryptopay_wallets (part, "closed", "number");
CREATE INDEX cryptopay_wallets_due ON cryptopay_wallets (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_transfers (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "wallet" text COLLATE "C" NOT NULL,
  "external_id" text COLLATE "C" NOT NULL,
  "transfer_type" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "error" text COLLATE "C" NOT NULL,
  "callback_url" text COLLATE "C" NOT NULL,
  "event_seq" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  "completed_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_transfers_i0 ON cryptopay_transfers (part, "created_at");
CREATE INDEX cryptopay_transfers_i1 ON cryptopay_transfers (part, "wallet", "created_at");
CREATE INDEX cryptopay_transfers_i2 ON cryptopay_transfers (part, "status", "created_at");
CREATE INDEX cryptopay_transfers_due ON cryptopay_transfers (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_wallet_sequences (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "last_number" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_wallet_sequences_due ON cryptopay_wallet_sequences (due, part, id) WHERE due > 0;

-- wallet/treasury, by tenant and network: the operator's own coins, and deposits
-- on their way to a hot address.
CREATE TABLE cryptopay_gas_floats (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "asset" text COLLATE "C" NOT NULL,
  "reserved" bigint NOT NULL,
  "in_flight" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_gas_floats_due ON cryptopay_gas_floats (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_gas_reservations (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "asset" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  "since" bigint NOT NULL,
  "open" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_gas_reservations_due ON cryptopay_gas_reservations (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_topups (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "amount" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_topups_due ON cryptopay_topups (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_sweeps (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "address" text COLLATE "C" NOT NULL,
  "key_ref" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "deposits" text COLLATE "C" NOT NULL,
  "state" text COLLATE "C" NOT NULL,
  "fundings" bigint NOT NULL,
  "reason" text COLLATE "C" NOT NULL,
  "tx" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_sweeps_i0 ON cryptopay_sweeps (part, "address", "currency");
CREATE INDEX cryptopay_sweeps_i1 ON cryptopay_sweeps (part, "state");
CREATE INDEX cryptopay_sweeps_due ON cryptopay_sweeps (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_treasury_holdings (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "place" text COLLATE "C" NOT NULL,
  "holder" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "external_id" text COLLATE "C" NOT NULL,
  "active" bigint NOT NULL,
  "network" text COLLATE "C" NOT NULL,
  "currency" text COLLATE "C" NOT NULL,
  "amount" text COLLATE "C" NOT NULL,
  "read_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_treasury_holdings_due ON cryptopay_treasury_holdings (due, part, id) WHERE due > 0;

-- webhook, by tenant: the outbox and its settings.
CREATE TABLE cryptopay_events (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "type" text COLLATE "C" NOT NULL,
  "object" text COLLATE "C" NOT NULL,
  "seq" bigint NOT NULL,
  "url" text COLLATE "C" NOT NULL,
  "body" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "status" text COLLATE "C" NOT NULL,
  "attempts" bigint NOT NULL,
  "response" bigint NOT NULL,
  "error" text COLLATE "C" NOT NULL,
  "done_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_events_u0 ON cryptopay_events (part, "object", "seq");
CREATE INDEX cryptopay_events_i0 ON cryptopay_events (part, "status", "created_at");
CREATE INDEX cryptopay_events_due ON cryptopay_events (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_webhook_settings (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "url" text COLLATE "C" NOT NULL,
  "events" text COLLATE "C" NOT NULL,
  "shown" bigint NOT NULL,
  "generation" bigint NOT NULL,
  "sealed" bytea NOT NULL,
  "masked" text COLLATE "C" NOT NULL,
  "previous" bytea NOT NULL,
  "previous_end" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_webhook_settings_due ON cryptopay_webhook_settings (due, part, id) WHERE due > 0;

-- httpapi/auth, in the system's partition: who may use the interface.
CREATE TABLE cryptopay_applications (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "number" bigint NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "scopes" text COLLATE "C" NOT NULL,
  "role" text COLLATE "C" NOT NULL,
  "secret_hash" bytea NOT NULL,
  "masked_secret" text COLLATE "C" NOT NULL,
  "secret_made" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_applications_u0 ON cryptopay_applications (part, "number");
CREATE INDEX cryptopay_applications_i0 ON cryptopay_applications (part, "tenant", "number");
CREATE INDEX cryptopay_applications_due ON cryptopay_applications (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_access_tokens (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "client_id" text COLLATE "C" NOT NULL,
  "application" bigint NOT NULL,
  "scopes" text COLLATE "C" NOT NULL,
  "revoked" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_access_tokens_due ON cryptopay_access_tokens (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_api_keys (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "key_id" text COLLATE "C" NOT NULL,
  "tenant" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "scopes" text COLLATE "C" NOT NULL,
  "role" text COLLATE "C" NOT NULL,
  "masked_key" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX cryptopay_api_keys_u0 ON cryptopay_api_keys (part, "key_id");
CREATE INDEX cryptopay_api_keys_i0 ON cryptopay_api_keys (part, "tenant", "created_at");
CREATE INDEX cryptopay_api_keys_due ON cryptopay_api_keys (due, part, id) WHERE due > 0;

CREATE TABLE cryptopay_application_sequence (
  "part" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "change_id" text COLLATE "C" NOT NULL,
  "due" bigint NOT NULL,
  "last_number" bigint NOT NULL,
  PRIMARY KEY (part, id)
);
CREATE INDEX cryptopay_application_sequence_due ON cryptopay_application_sequence (due, part, id) WHERE due > 0;
