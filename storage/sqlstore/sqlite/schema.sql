-- All migrations up to 0037_undone.
CREATE TABLE cryptopay_parts (
  part TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE cryptopay_ledger_txs (
  part TEXT NOT NULL,
  id TEXT NOT NULL,
  change_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE cryptopay_balances (
  part TEXT NOT NULL,
  account TEXT NOT NULL,
  asset TEXT NOT NULL,
  posted INTEGER NOT NULL,
  held INTEGER NOT NULL,
  seq INTEGER NOT NULL CHECK (seq >= 0),
  PRIMARY KEY (part, account, asset),
  CHECK (substr(account, 1, 7) <> 'wallet/' OR (held >= 0 AND posted >= held))
) STRICT, WITHOUT ROWID;
CREATE TABLE cryptopay_entries (
  part TEXT NOT NULL,
  account TEXT NOT NULL,
  asset TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq > 0),
  tx TEXT NOT NULL,
  delta INTEGER NOT NULL CHECK (delta <> 0),
  balance_after INTEGER NOT NULL,
  PRIMARY KEY (part, account, asset, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE cryptopay_levels (
  part TEXT NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL CHECK (value >= 0),
  PRIMARY KEY (part, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE cryptopay_idempotency (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "fingerprint" TEXT NOT NULL,
  "response" BLOB NOT NULL,
  "created_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_idempotency_due ON cryptopay_idempotency (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_activity (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "status" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "fee" INTEGER NOT NULL,
  "net" INTEGER NOT NULL,
  "address" TEXT NOT NULL,
  "tx_hash" TEXT NOT NULL,
  "reference" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "metadata" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_activity_due ON cryptopay_activity (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_sightings (
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
  "forward_fee" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_sightings_i1 ON cryptopay_sightings (part, "address", "state");
CREATE INDEX cryptopay_sightings_due ON cryptopay_sightings (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_addresses (
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
  "watch_until" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_addresses_u0 ON cryptopay_addresses (part, "seq");
CREATE INDEX cryptopay_addresses_i0 ON cryptopay_addresses (part, "tenant", "use_for");
CREATE INDEX cryptopay_addresses_due ON cryptopay_addresses (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_cursors (
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
  "halted" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_cursors_due ON cryptopay_cursors (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_intents (
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
  "updated_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "mandate" TEXT NOT NULL DEFAULT '', "endings" TEXT NOT NULL DEFAULT 'null', "undone" TEXT NOT NULL DEFAULT 'null',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_intents_i0 ON cryptopay_intents (part, "tenant", "state");
CREATE INDEX cryptopay_intents_i1 ON cryptopay_intents (part, "state");
CREATE INDEX cryptopay_intents_i2 ON cryptopay_intents (part, "from_address", "nonce");
CREATE INDEX cryptopay_intents_due ON cryptopay_intents (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_attempts (
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
  "sent_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "cost" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_attempts_i0 ON cryptopay_attempts (part, "intent", "number");
CREATE INDEX cryptopay_attempts_due ON cryptopay_attempts (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_reservations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_reservations_i0 ON cryptopay_reservations (part, "intent");
CREATE INDEX cryptopay_reservations_due ON cryptopay_reservations (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_nonces (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "next_nonce" INTEGER NOT NULL,
  "holder" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_nonces_due ON cryptopay_nonces (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_coins (
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
  "intent" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_coins_i0 ON cryptopay_coins (part, "tenant", "state", "amount");
CREATE INDEX cryptopay_coins_due ON cryptopay_coins (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_outcomes (
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
  "at" INTEGER NOT NULL, "batch" TEXT NOT NULL DEFAULT '', "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "undone" TEXT NOT NULL DEFAULT 'null',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_outcomes_i0 ON cryptopay_outcomes (part, "tenant", "state");
CREATE INDEX cryptopay_outcomes_due ON cryptopay_outcomes (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_signed_attempts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL,
  "payload" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "tx" TEXT NOT NULL DEFAULT '', "slots" TEXT NOT NULL DEFAULT 'null',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_signed_attempts_due ON cryptopay_signed_attempts (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_signed_slots (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "intent" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_signed_slots_due ON cryptopay_signed_slots (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_payments (
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
  "watched_until" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "address_id" TEXT NOT NULL DEFAULT '', "slot" TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_payments_i0 ON cryptopay_payments (part, "created_at");
CREATE INDEX cryptopay_payments_i1 ON cryptopay_payments (part, "status", "created_at");
CREATE INDEX cryptopay_payments_i2 ON cryptopay_payments (part, "currency", "created_at");
CREATE INDEX cryptopay_payments_due ON cryptopay_payments (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_deposits (
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
  "updated_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "told" INTEGER NOT NULL DEFAULT 0, "screen" TEXT NOT NULL DEFAULT '', "screen_reason" TEXT NOT NULL DEFAULT '', "screened_at" INTEGER NOT NULL DEFAULT 0, "screen_next" INTEGER NOT NULL DEFAULT 0, "screen_told" INTEGER NOT NULL DEFAULT 0, "held_as" TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_deposits_i0 ON cryptopay_deposits (part, "payment");
CREATE INDEX cryptopay_deposits_i2 ON cryptopay_deposits (part, "booking", "created_at");
CREATE INDEX cryptopay_deposits_due ON cryptopay_deposits (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_withdrawals (
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
  "completed_at" INTEGER NOT NULL, "delivered" INTEGER NOT NULL DEFAULT 0, "waiting_since" INTEGER NOT NULL DEFAULT 0, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "mandate" TEXT NOT NULL DEFAULT '', "approval" TEXT NOT NULL DEFAULT '', "requested_by" TEXT NOT NULL DEFAULT '', "decisions" TEXT NOT NULL DEFAULT 'null',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_withdrawals_i0 ON cryptopay_withdrawals (part, "created_at");
CREATE INDEX cryptopay_withdrawals_i1 ON cryptopay_withdrawals (part, "status", "created_at");
CREATE INDEX cryptopay_withdrawals_i2 ON cryptopay_withdrawals (part, "currency", "created_at");
CREATE INDEX cryptopay_withdrawals_i3 ON cryptopay_withdrawals (part, "custom_id");
CREATE INDEX cryptopay_withdrawals_i4 ON cryptopay_withdrawals (part, "amount_rank");
CREATE INDEX cryptopay_withdrawals_i5 ON cryptopay_withdrawals (part, "counter");
CREATE INDEX cryptopay_withdrawals_due ON cryptopay_withdrawals (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_tenants (
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
  "updated_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_tenants_i0 ON cryptopay_tenants (part, "created_at");
CREATE INDEX cryptopay_tenants_due ON cryptopay_tenants (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_wallets (
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
  "updated_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_wallets_u0 ON cryptopay_wallets (part, "number");
CREATE UNIQUE INDEX cryptopay_wallets_u1 ON cryptopay_wallets (part, "external_key");
CREATE INDEX cryptopay_wallets_i0 ON cryptopay_wallets (part, "closed", "number");
CREATE INDEX cryptopay_wallets_due ON cryptopay_wallets (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_transfers (
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
  "completed_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_transfers_i0 ON cryptopay_transfers (part, "created_at");
CREATE INDEX cryptopay_transfers_i1 ON cryptopay_transfers (part, "wallet", "created_at");
CREATE INDEX cryptopay_transfers_i2 ON cryptopay_transfers (part, "status", "created_at");
CREATE INDEX cryptopay_transfers_due ON cryptopay_transfers (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_wallet_sequences (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last_number" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_wallet_sequences_due ON cryptopay_wallet_sequences (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_gas_floats (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "asset" TEXT NOT NULL,
  "reserved" INTEGER NOT NULL,
  "in_flight" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "lacking" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_gas_floats_due ON cryptopay_gas_floats (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_gas_reservations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "asset" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  "open" INTEGER NOT NULL, "counted" INTEGER NOT NULL DEFAULT 0, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "undone" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_gas_reservations_due ON cryptopay_gas_reservations (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_topups (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tx" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_topups_due ON cryptopay_topups (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_sweeps (
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
  "created_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_sweeps_i0 ON cryptopay_sweeps (part, "address", "currency");
CREATE INDEX cryptopay_sweeps_i1 ON cryptopay_sweeps (part, "state");
CREATE INDEX cryptopay_sweeps_due ON cryptopay_sweeps (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_treasury_holdings (
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
  "read_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_treasury_holdings_due ON cryptopay_treasury_holdings (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_events (
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
  "done_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_events_u0 ON cryptopay_events (part, "object", "seq");
CREATE INDEX cryptopay_events_i0 ON cryptopay_events (part, "status", "created_at");
CREATE INDEX cryptopay_events_due ON cryptopay_events (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_webhook_settings (
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
  "updated_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_webhook_settings_due ON cryptopay_webhook_settings (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_applications (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "number" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "scopes" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "secret_hash" BLOB NOT NULL,
  "masked_secret" TEXT NOT NULL,
  "secret_made" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "seal" BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_applications_u0 ON cryptopay_applications (part, "number");
CREATE INDEX cryptopay_applications_i0 ON cryptopay_applications (part, "tenant", "number");
CREATE INDEX cryptopay_applications_due ON cryptopay_applications (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_access_tokens (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "client_id" TEXT NOT NULL,
  "application" INTEGER NOT NULL,
  "scopes" TEXT NOT NULL,
  "revoked" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "expires_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "seal" BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_access_tokens_due ON cryptopay_access_tokens (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_api_keys (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "key_id" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "scopes" TEXT NOT NULL,
  "role" TEXT NOT NULL,
  "masked_key" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "seal" BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_api_keys_u0 ON cryptopay_api_keys (part, "key_id");
CREATE INDEX cryptopay_api_keys_i0 ON cryptopay_api_keys (part, "tenant", "created_at");
CREATE INDEX cryptopay_api_keys_due ON cryptopay_api_keys (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_application_sequence (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last_number" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_application_sequence_due ON cryptopay_application_sequence (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_listings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "network" TEXT NOT NULL,
  "contract" TEXT NOT NULL,
  "decimals" INTEGER NOT NULL,
  "scale" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_listings_due ON cryptopay_listings (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_seals (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "number" INTEGER NOT NULL,
  "sealed_at" INTEGER NOT NULL,
  "ranges" TEXT NOT NULL,
  "marks" BLOB NOT NULL,
  "hash" BLOB NOT NULL,
  "mac" BLOB NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "audit" INTEGER NOT NULL DEFAULT 0, "audit_hash" BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_seals_due ON cryptopay_seals (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_seal_heights (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "account" TEXT NOT NULL,
  "asset" TEXT NOT NULL,
  "seq" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_seal_heights_due ON cryptopay_seal_heights (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_rides (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "carrier" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_rides_i0 ON cryptopay_rides (part, "carrier");
CREATE INDEX cryptopay_rides_due ON cryptopay_rides (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_activity_i0 ON cryptopay_activity (part, "created_at", "id");
CREATE TABLE cryptopay_unlisted (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "contract" TEXT NOT NULL,
  "coins" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_unlisted_i0 ON cryptopay_unlisted (part, "contract");
CREATE INDEX cryptopay_unlisted_due ON cryptopay_unlisted (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_missing (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "since" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_missing_due ON cryptopay_missing (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_abilities (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "on" INTEGER NOT NULL,
  "since" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_abilities_due ON cryptopay_abilities (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_fingerprints (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "sum" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_fingerprints_due ON cryptopay_fingerprints (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_minimums (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "at" INTEGER NOT NULL,
  "samples" TEXT NOT NULL,
  "least" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_minimums_due ON cryptopay_minimums (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_asset_halts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "since" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_asset_halts_due ON cryptopay_asset_halts (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_sweep_notes (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "since" INTEGER NOT NULL,
  "next" INTEGER NOT NULL,
  "due_below" INTEGER NOT NULL,
  "tries" INTEGER NOT NULL,
  "spent" INTEGER NOT NULL,
  "sent" INTEGER NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "gas" INTEGER NOT NULL,
  "gas_cost" INTEGER NOT NULL,
  "payout" TEXT NOT NULL,
  "allowed" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0, "alerted" TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_sweep_notes_i0 ON cryptopay_sweep_notes (part, "currency", "due_below");
CREATE INDEX cryptopay_sweep_notes_i1 ON cryptopay_sweep_notes (part, "tenant", "currency", "amount");
CREATE INDEX cryptopay_sweep_notes_due ON cryptopay_sweep_notes (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_holdings (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "amount" TEXT NOT NULL,
  "nonce" INTEGER NOT NULL,
  "height" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_holdings_i0 ON cryptopay_holdings (part, "height");
CREATE INDEX cryptopay_holdings_due ON cryptopay_holdings (due, part, id) WHERE due > 0;
CREATE TRIGGER cryptopay_withdrawals_made BEFORE INSERT ON cryptopay_withdrawals
WHEN NEW."amount" + NEW."platform_fee" + NEW."network_fee" <> NEW."requested" OR NEW."amount" <= 0 OR NEW."platform_fee" < 0 OR NEW."network_fee" < 0
BEGIN SELECT RAISE(ABORT, 'cryptopay_withdrawals_sum: amount and fees are not what was requested'); END;
CREATE TRIGGER cryptopay_withdrawals_kept BEFORE UPDATE OF "amount", "platform_fee", "network_fee", "requested" ON cryptopay_withdrawals
WHEN (NEW."amount" + NEW."platform_fee" + NEW."network_fee" <> NEW."requested" OR NEW."amount" <= 0 OR NEW."platform_fee" < 0 OR NEW."network_fee" < 0)
AND (NEW."amount" <> OLD."amount" OR NEW."platform_fee" <> OLD."platform_fee" OR NEW."network_fee" <> OLD."network_fee" OR NEW."requested" <> OLD."requested")
BEGIN SELECT RAISE(ABORT, 'cryptopay_withdrawals_sum: amount and fees are not what was requested'); END;
CREATE INDEX cryptopay_payments_a0 ON cryptopay_payments ("currency", "status", "created_at");
CREATE INDEX cryptopay_withdrawals_i6 ON cryptopay_withdrawals (part, "currency", "status", "waiting_since");
CREATE TABLE cryptopay_counters (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "value" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_counters_due ON cryptopay_counters (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_stream_events (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "object" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "data" TEXT NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_stream_events_due ON cryptopay_stream_events (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_streams (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "last" INTEGER NOT NULL, "lease" INTEGER NOT NULL DEFAULT 0, "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_streams_due ON cryptopay_streams (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_halts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "halts" TEXT NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_halts_due ON cryptopay_halts (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_operations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "object" TEXT NOT NULL,
  "state_before" TEXT NOT NULL,
  "state_after" TEXT NOT NULL,
  "copied" INTEGER NOT NULL,
  "at" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0, "number" INTEGER NOT NULL DEFAULT 0, "previous" BLOB NOT NULL DEFAULT x'', "hash" BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_operations_due ON cryptopay_operations (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_operations_a0 ON cryptopay_operations ("at");
CREATE TABLE cryptopay_withdrawal_waits (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "since" INTEGER NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "alerted" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_withdrawal_waits_due ON cryptopay_withdrawal_waits (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_forks (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "height" INTEGER NOT NULL,
  "time" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_forks_due ON cryptopay_forks (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_sightings_i0 ON cryptopay_sightings (part, "state", "forward", "final_at");
CREATE TABLE cryptopay_consumers (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "since" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_consumers_due ON cryptopay_consumers (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_consumer_places (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "consumer" TEXT NOT NULL,
  "seen" INTEGER NOT NULL,
  "tries" INTEGER NOT NULL,
  "error" TEXT NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_consumer_places_due ON cryptopay_consumer_places (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_dead_letters (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "consumer" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "object" TEXT NOT NULL,
  "kind" TEXT NOT NULL,
  "error" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_dead_letters_i0 ON cryptopay_dead_letters (part, "consumer", "object");
CREATE INDEX cryptopay_dead_letters_due ON cryptopay_dead_letters (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_payments_i3 ON cryptopay_payments (part, "order_id", "created_at");
CREATE INDEX cryptopay_payments_i4 ON cryptopay_payments (part, "custom_id", "created_at");
CREATE UNIQUE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, "network", "address", "slot");
CREATE INDEX cryptopay_deposits_i1 ON cryptopay_deposits (part, "network", "address", "booking");
CREATE TABLE cryptopay_permanent_addresses (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "address_id" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "external_id" TEXT NOT NULL,
  "wallet" TEXT NOT NULL,
  "wallet_ref" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "retired_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE UNIQUE INDEX cryptopay_permanent_addresses_u0 ON cryptopay_permanent_addresses (part, "network", "address");
CREATE UNIQUE INDEX cryptopay_permanent_addresses_u1 ON cryptopay_permanent_addresses (part, "external_id", "network");
CREATE INDEX cryptopay_permanent_addresses_i0 ON cryptopay_permanent_addresses (part, "created_at");
CREATE INDEX cryptopay_permanent_addresses_due ON cryptopay_permanent_addresses (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_policies (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "number" INTEGER NOT NULL,
  "rules" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "seal" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_policies_i0 ON cryptopay_policies (part, "number");
CREATE INDEX cryptopay_policies_due ON cryptopay_policies (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_policy_uses (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "rule" TEXT NOT NULL,
  "slots" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_policy_uses_due ON cryptopay_policy_uses (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_policy_destinations (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "network" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "at" INTEGER NOT NULL,
  "removed_at" INTEGER NOT NULL,
  "seal" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_policy_destinations_i0 ON cryptopay_policy_destinations (part, "at");
CREATE INDEX cryptopay_policy_destinations_due ON cryptopay_policy_destinations (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_house_payments (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "payment_id" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "source" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "all_funds" INTEGER NOT NULL,
  "status" TEXT NOT NULL,
  "stage" TEXT NOT NULL,
  "max_cost" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "waiting_since" INTEGER NOT NULL,
  "reason" TEXT NOT NULL,
  "tx" TEXT NOT NULL,
  "outcome_at" INTEGER NOT NULL,
  "requested_by" TEXT NOT NULL,
  "mandate" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "completed_at" INTEGER NOT NULL, "waits_long" INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_house_payments_i0 ON cryptopay_house_payments (part, "created_at");
CREATE INDEX cryptopay_house_payments_i1 ON cryptopay_house_payments (part, "status", "created_at");
CREATE INDEX cryptopay_house_payments_due ON cryptopay_house_payments (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_refunds (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "payment" TEXT NOT NULL,
  "deposit" TEXT NOT NULL,
  "withdrawal" TEXT NOT NULL,
  "status" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "currency" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "scale" INTEGER NOT NULL,
  "wallet" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "memo" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "claim" TEXT NOT NULL,
  "expires_at" INTEGER NOT NULL,
  "waiting" TEXT NOT NULL,
  "waiting_since" INTEGER NOT NULL,
  "failure" TEXT NOT NULL,
  "callback_url" TEXT NOT NULL,
  "requested_by" TEXT NOT NULL,
  "seal" TEXT NOT NULL,
  "event_seq" INTEGER NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_refunds_i0 ON cryptopay_refunds (part, "payment", "created_at");
CREATE INDEX cryptopay_refunds_i1 ON cryptopay_refunds (part, "deposit");
CREATE INDEX cryptopay_refunds_i2 ON cryptopay_refunds (part, "created_at");
CREATE INDEX cryptopay_refunds_a0 ON cryptopay_refunds ("claim");
CREATE INDEX cryptopay_refunds_due ON cryptopay_refunds (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_events_i1 ON cryptopay_events (part, "created_at");
CREATE INDEX cryptopay_events_i2 ON cryptopay_events (part, "type", "created_at");
CREATE INDEX cryptopay_refunds_i3 ON cryptopay_refunds (part, "status", "created_at");
CREATE TABLE cryptopay_looks (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "looked_at" INTEGER NOT NULL,
  "waits" TEXT NOT NULL,
  "waits_since" INTEGER NOT NULL,
  "watch_until" INTEGER NOT NULL,
  "base_height" INTEGER NOT NULL,
  "base_cut" INTEGER NOT NULL,
  "reading" TEXT NOT NULL,
  "spots" TEXT NOT NULL,
  "earlier" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_looks_i0 ON cryptopay_looks (part, "looked_at");
CREATE INDEX cryptopay_looks_i1 ON cryptopay_looks (part, "waits", "waits_since");
CREATE INDEX cryptopay_looks_due ON cryptopay_looks (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_differences (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "network" TEXT NOT NULL,
  "tenant" TEXT NOT NULL,
  "address" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "kind" TEXT NOT NULL,
  "amount" TEXT NOT NULL,
  "held" TEXT NOT NULL,
  "height" INTEGER NOT NULL,
  "since" INTEGER NOT NULL,
  "looked_at" INTEGER NOT NULL,
  "halted" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_differences_i0 ON cryptopay_differences (part, "tenant", "currency");
CREATE INDEX cryptopay_differences_due ON cryptopay_differences (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_look_places (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "seq" INTEGER NOT NULL,
  "final_at" INTEGER NOT NULL,
  "earlier_seq" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_look_places_due ON cryptopay_look_places (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_sightings_i2 ON cryptopay_sightings (part, "address", "height");
CREATE INDEX cryptopay_intents_i3 ON cryptopay_intents (part, "tenant", "updated_at");
CREATE TABLE cryptopay_payouts (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "withdrawals" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_payouts_due ON cryptopay_payouts (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_refill_proposals (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "proposal_id" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "tenant" TEXT NOT NULL,
  "network" TEXT NOT NULL,
  "currency" TEXT NOT NULL,
  "from_address" TEXT NOT NULL,
  "to_address" TEXT NOT NULL,
  "amount" INTEGER NOT NULL,
  "fee" INTEGER NOT NULL,
  "inputs" TEXT NOT NULL,
  "outputs" TEXT NOT NULL,
  "payload" BLOB NOT NULL,
  "tx" TEXT NOT NULL,
  "seal" TEXT NOT NULL,
  "raw" BLOB NOT NULL,
  "status" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "requested_by" TEXT NOT NULL,
  "created_at" INTEGER NOT NULL,
  "updated_at" INTEGER NOT NULL,
  "expires_at" INTEGER NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_refill_proposals_i0 ON cryptopay_refill_proposals (part, "currency", "number");
CREATE INDEX cryptopay_refill_proposals_i1 ON cryptopay_refill_proposals (part, "tx");
CREATE INDEX cryptopay_refill_proposals_i2 ON cryptopay_refill_proposals (part, "created_at");
CREATE INDEX cryptopay_refill_proposals_due ON cryptopay_refill_proposals (due, part, id) WHERE due > 0;
CREATE INDEX cryptopay_operations_i0 ON cryptopay_operations (part, "number");
CREATE TABLE cryptopay_audit_heads (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "number" INTEGER NOT NULL,
  "hash" BLOB NOT NULL,
  "mac" BLOB NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_audit_heads_due ON cryptopay_audit_heads (due, part, id) WHERE due > 0;
CREATE TABLE cryptopay_signed_orders (
  "part" TEXT NOT NULL,
  "id" TEXT NOT NULL,
  "version" INTEGER NOT NULL,
  "change_id" TEXT NOT NULL,
  "due" INTEGER NOT NULL,
  "lease" INTEGER NOT NULL DEFAULT 0,
  "claims" INTEGER NOT NULL DEFAULT 0,
  "live" TEXT NOT NULL,
  PRIMARY KEY (part, id)
) STRICT;
CREATE INDEX cryptopay_signed_orders_due ON cryptopay_signed_orders (due, part, id) WHERE due > 0;
