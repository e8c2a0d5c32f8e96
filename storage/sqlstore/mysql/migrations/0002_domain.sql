-- One table per declaration of the domains. A row's first five columns are the
-- store's: its partition, id, version, the Change that wrote it, and when it is
-- due (0 = never). Times are µs since 1970 UTC, amounts 64-bit integers, exact
-- decimals and JSON text.
-- Text is kept as bytes, indexed text in at most 500 of them. Each statement stands
-- alone and may be run again: these servers cannot take one back.

-- chain/incoming, by network: what happened at our addresses, the addresses, and
-- how far each chain was read.
CREATE TABLE IF NOT EXISTS cryptopay_sightings (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `network` longblob NOT NULL,
  `tx` varbinary(500) NOT NULL,
  `ordinal` bigint NOT NULL,
  `generation` bigint NOT NULL,
  `state` varbinary(500) NOT NULL,
  `address` varbinary(500) NOT NULL,
  `tenant` longblob NOT NULL,
  `purpose` longblob NOT NULL,
  `from_address` longblob NOT NULL,
  `memo` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `contract` longblob NOT NULL,
  `exact` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `height` bigint NOT NULL,
  `block_hash` longblob NOT NULL,
  `block_time` bigint NOT NULL,
  `final_at` bigint NOT NULL,
  `first_seen` bigint NOT NULL,
  `inherited_from` longblob NOT NULL,
  `spends` longblob NOT NULL,
  `internal` bigint NOT NULL,
  `unproven` bigint NOT NULL,
  `forward` varbinary(500) NOT NULL,
  `forward_tx` longblob NOT NULL,
  `forward_fee` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_sightings_i0 (part, `state`, `final_at`),
  INDEX cryptopay_sightings_i1 (part, `address`, `state`),
  INDEX cryptopay_sightings_i2 (part, `forward`, `state`),
  INDEX cryptopay_sightings_i3 (part, `tx`),
  INDEX cryptopay_sightings_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_addresses (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `seq` bigint NOT NULL,
  `key_index` bigint NOT NULL,
  `key_ref` longblob NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `use_for` varbinary(500) NOT NULL,
  `created_at` bigint NOT NULL,
  `watch_until` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_addresses_u0 (part, `seq`),
  INDEX cryptopay_addresses_i0 (part, `tenant`, `use_for`),
  INDEX cryptopay_addresses_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_cursors (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `trail` longblob NOT NULL,
  `head` bigint NOT NULL,
  `final` bigint NOT NULL,
  `tip_read` bigint NOT NULL,
  `head_time` bigint NOT NULL,
  `halted` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_cursors_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- chain/outgoing, by network: what is to be paid, each signed transaction, and
-- the nonces and coins that they use.
CREATE TABLE IF NOT EXISTS cryptopay_intents (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `purpose` longblob NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `network` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `from_address` varbinary(500) NOT NULL,
  `from_key` longblob NOT NULL,
  `to_address` longblob NOT NULL,
  `memo` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `all_funds` bigint NOT NULL,
  `max_cost` bigint NOT NULL,
  `confirmations` bigint NOT NULL,
  `state` varbinary(500) NOT NULL,
  `reason` longblob NOT NULL,
  `attempts` bigint NOT NULL,
  `tx` longblob NOT NULL,
  `nonce` bigint NOT NULL,
  `plan` longblob NOT NULL,
  `filling` bigint NOT NULL,
  `reached` bigint NOT NULL,
  `reserved` bigint NOT NULL,
  `tries` bigint NOT NULL,
  `bump_at` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_intents_i0 (part, `tenant`, `state`),
  INDEX cryptopay_intents_i1 (part, `state`),
  INDEX cryptopay_intents_i2 (part, `from_address`, `nonce`),
  INDEX cryptopay_intents_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_attempts (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `intent` varbinary(500) NOT NULL,
  `number` bigint NOT NULL,
  `tenant` longblob NOT NULL,
  `purpose` longblob NOT NULL,
  `raw` longblob NOT NULL,
  `nonce` bigint NOT NULL,
  `spends` longblob NOT NULL,
  `outputs` longblob NOT NULL,
  `coins` longblob NOT NULL,
  `change_to` longblob NOT NULL,
  `fee` longblob NOT NULL,
  `max_cost` bigint NOT NULL,
  `fate` longblob NOT NULL,
  `rejected` bigint NOT NULL,
  `stored_at` bigint NOT NULL,
  `sent_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_attempts_i0 (part, `intent`, `number`),
  INDEX cryptopay_attempts_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_reservations (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `intent` varbinary(500) NOT NULL,
  `at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_reservations_i0 (part, `intent`),
  INDEX cryptopay_reservations_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_nonces (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `next_nonce` bigint NOT NULL,
  `holder` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_nonces_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_coins (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `address` longblob NOT NULL,
  `key_ref` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `state` varbinary(500) NOT NULL,
  `intent` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_coins_i0 (part, `tenant`, `state`, `amount`),
  INDEX cryptopay_coins_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_outcomes (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `intent` longblob NOT NULL,
  `purpose` longblob NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `network` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `state` varbinary(500) NOT NULL,
  `reason` longblob NOT NULL,
  `tx` longblob NOT NULL,
  `confirmations` bigint NOT NULL,
  `amount` bigint NOT NULL,
  `cost` bigint NOT NULL,
  `cost_tx` longblob NOT NULL,
  `at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_outcomes_i0 (part, `tenant`, `state`),
  INDEX cryptopay_outcomes_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- chain/keys, by network: what a signer has signed.
CREATE TABLE IF NOT EXISTS cryptopay_signed_attempts (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `intent` longblob NOT NULL,
  `payload` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_signed_attempts_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_signed_slots (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `intent` longblob NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_signed_slots_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- payment, by tenant.
CREATE TABLE IF NOT EXISTS cryptopay_payments (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `payment_id` longblob NOT NULL,
  `status` varbinary(500) NOT NULL,
  `payment_type` longblob NOT NULL,
  `network` varbinary(500) NOT NULL,
  `address` varbinary(500) NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `token` longblob NOT NULL,
  `scale` bigint NOT NULL,
  `price_amount` longblob NOT NULL,
  `price_currency` longblob NOT NULL,
  `amount_crypto` bigint NOT NULL,
  `tolerance` bigint NOT NULL,
  `rate` longblob NOT NULL,
  `usd_rate` longblob NOT NULL,
  `is_fixed_rate` bigint NOT NULL,
  `is_fee_paid_by_user` bigint NOT NULL,
  `fee_percent` longblob NOT NULL,
  `network_fee` bigint NOT NULL,
  `received` bigint NOT NULL,
  `net` bigint NOT NULL,
  `platform` bigint NOT NULL,
  `network_taken` bigint NOT NULL,
  `received_value` longblob NOT NULL,
  `live` bigint NOT NULL,
  `tx_hash` longblob NOT NULL,
  `confirmations` bigint NOT NULL,
  `wallet` longblob NOT NULL,
  `wallet_ref` longblob NOT NULL,
  `order_id` varbinary(500) NOT NULL,
  `order_description` longblob NOT NULL,
  `callback_url` longblob NOT NULL,
  `custom_id` longblob NOT NULL,
  `customer_email` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  `expires_at` bigint NOT NULL,
  `confirmed_at` bigint NOT NULL,
  `closed` bigint NOT NULL,
  `cancelled` bigint NOT NULL,
  `events` bigint NOT NULL,
  `watched_until` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_payments_u0 (part, `network`, `address`),
  INDEX cryptopay_payments_i0 (part, `created_at`),
  INDEX cryptopay_payments_i1 (part, `status`, `created_at`),
  INDEX cryptopay_payments_i2 (part, `currency`, `created_at`),
  INDEX cryptopay_payments_i3 (part, `order_id`),
  INDEX cryptopay_payments_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_deposits (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `deposit_id` longblob NOT NULL,
  `payment` varbinary(500) NOT NULL,
  `role` longblob NOT NULL,
  `booking` varbinary(500) NOT NULL,
  `state` longblob NOT NULL,
  `proven` bigint NOT NULL,
  `given_up` bigint NOT NULL,
  `network` varbinary(500) NOT NULL,
  `address` varbinary(500) NOT NULL,
  `tx` longblob NOT NULL,
  `ordinal` bigint NOT NULL,
  `generation` bigint NOT NULL,
  `from_address` longblob NOT NULL,
  `memo` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `contract` longblob NOT NULL,
  `exact` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `rate` longblob NOT NULL,
  `weight` bigint NOT NULL,
  `wallet` longblob NOT NULL,
  `net` bigint NOT NULL,
  `platform` bigint NOT NULL,
  `network_taken` bigint NOT NULL,
  `owed` bigint NOT NULL,
  `height` bigint NOT NULL,
  `block_time` bigint NOT NULL,
  `first_seen` bigint NOT NULL,
  `confirmations` bigint NOT NULL,
  `fact_version` bigint NOT NULL,
  `forward` longblob NOT NULL,
  `forward_tx` longblob NOT NULL,
  `forward_fee` longblob NOT NULL,
  `merged` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_deposits_i0 (part, `payment`),
  INDEX cryptopay_deposits_i1 (part, `network`, `address`),
  INDEX cryptopay_deposits_i2 (part, `booking`, `created_at`),
  INDEX cryptopay_deposits_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- withdrawal, by tenant.
CREATE TABLE IF NOT EXISTS cryptopay_withdrawals (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` longblob NOT NULL,
  `custom_id` varbinary(500) NOT NULL,
  `wallet` longblob NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `network` longblob NOT NULL,
  `token` longblob NOT NULL,
  `address` longblob NOT NULL,
  `memo` longblob NOT NULL,
  `sent_memo` longblob NOT NULL,
  `requested` bigint NOT NULL,
  `amount` bigint NOT NULL,
  `platform_fee` bigint NOT NULL,
  `network_fee` bigint NOT NULL,
  `amount_rank` bigint NOT NULL,
  `status` varbinary(500) NOT NULL,
  `tx` longblob NOT NULL,
  `confirmations` bigint NOT NULL,
  `required_confirmations` bigint NOT NULL,
  `batch_id` longblob NOT NULL,
  `callback_url` longblob NOT NULL,
  `stage` longblob NOT NULL,
  `max_cost` bigint NOT NULL,
  `review` longblob NOT NULL,
  `frozen` bigint NOT NULL,
  `waiting` longblob NOT NULL,
  `reason` longblob NOT NULL,
  `outcome_at` bigint NOT NULL,
  `counter` varbinary(500) NOT NULL,
  `event_seq` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  `processed_at` bigint NOT NULL,
  `completed_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_withdrawals_i0 (part, `created_at`),
  INDEX cryptopay_withdrawals_i1 (part, `status`, `created_at`),
  INDEX cryptopay_withdrawals_i2 (part, `currency`, `created_at`),
  INDEX cryptopay_withdrawals_i3 (part, `custom_id`),
  INDEX cryptopay_withdrawals_i4 (part, `amount_rank`),
  INDEX cryptopay_withdrawals_i5 (part, `counter`),
  INDEX cryptopay_withdrawals_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- wallet: the directory of tenants, and by tenant its wallets and transfers.
CREATE TABLE IF NOT EXISTS cryptopay_tenants (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `name` longblob NOT NULL,
  `transaction_fee` longblob NOT NULL,
  `fee_paid_by_user` bigint NOT NULL,
  `withdrawal_percent` longblob NOT NULL,
  `withdrawal_flat` longblob NOT NULL,
  `withdrawal_flats` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_tenants_i0 (part, `created_at`),
  INDEX cryptopay_tenants_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_wallets (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `number` bigint NOT NULL,
  `name` longblob NOT NULL,
  `external_id` longblob NOT NULL,
  `external_key` varbinary(500) NOT NULL,
  `closed` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_wallets_u0 (part, `number`),
  UNIQUE INDEX cryptopay_wallets_u1 (part, `external_key`),
  INDEX cryptopay_wallets_i0 (part, `closed`, `number`),
  INDEX cryptopay_wallets_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_transfers (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `wallet` varbinary(500) NOT NULL,
  `external_id` longblob NOT NULL,
  `transfer_type` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `status` varbinary(500) NOT NULL,
  `error` longblob NOT NULL,
  `callback_url` longblob NOT NULL,
  `event_seq` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  `completed_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_transfers_i0 (part, `created_at`),
  INDEX cryptopay_transfers_i1 (part, `wallet`, `created_at`),
  INDEX cryptopay_transfers_i2 (part, `status`, `created_at`),
  INDEX cryptopay_transfers_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_wallet_sequences (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `last_number` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_wallet_sequences_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- wallet/treasury, by tenant and network: the operator's own coins, and deposits
-- on their way to a hot address.
CREATE TABLE IF NOT EXISTS cryptopay_gas_floats (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `asset` longblob NOT NULL,
  `reserved` bigint NOT NULL,
  `in_flight` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_gas_floats_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_gas_reservations (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `asset` longblob NOT NULL,
  `amount` bigint NOT NULL,
  `since` bigint NOT NULL,
  `open` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_gas_reservations_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_topups (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tx` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `amount` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_topups_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_sweeps (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` longblob NOT NULL,
  `network` longblob NOT NULL,
  `address` varbinary(500) NOT NULL,
  `key_ref` longblob NOT NULL,
  `currency` varbinary(500) NOT NULL,
  `deposits` longblob NOT NULL,
  `state` varbinary(500) NOT NULL,
  `fundings` bigint NOT NULL,
  `reason` longblob NOT NULL,
  `tx` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_sweeps_i0 (part, `address`, `currency`),
  INDEX cryptopay_sweeps_i1 (part, `state`),
  INDEX cryptopay_sweeps_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_treasury_holdings (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `tenant` longblob NOT NULL,
  `place` longblob NOT NULL,
  `holder` longblob NOT NULL,
  `name` longblob NOT NULL,
  `external_id` longblob NOT NULL,
  `active` bigint NOT NULL,
  `network` longblob NOT NULL,
  `currency` longblob NOT NULL,
  `amount` longblob NOT NULL,
  `read_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_treasury_holdings_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- webhook, by tenant: the outbox and its settings.
CREATE TABLE IF NOT EXISTS cryptopay_events (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `type` longblob NOT NULL,
  `object` varbinary(500) NOT NULL,
  `seq` bigint NOT NULL,
  `url` longblob NOT NULL,
  `body` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  `status` varbinary(500) NOT NULL,
  `attempts` bigint NOT NULL,
  `response` bigint NOT NULL,
  `error` longblob NOT NULL,
  `done_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_events_u0 (part, `object`, `seq`),
  INDEX cryptopay_events_i0 (part, `status`, `created_at`),
  INDEX cryptopay_events_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_webhook_settings (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `url` longblob NOT NULL,
  `events` longblob NOT NULL,
  `shown` bigint NOT NULL,
  `generation` bigint NOT NULL,
  `sealed` longblob NOT NULL,
  `masked` longblob NOT NULL,
  `previous` longblob NOT NULL,
  `previous_end` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `updated_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_webhook_settings_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- httpapi/auth, in the system's partition: who may use the interface.
CREATE TABLE IF NOT EXISTS cryptopay_applications (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `number` bigint NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `name` longblob NOT NULL,
  `scopes` longblob NOT NULL,
  `role` longblob NOT NULL,
  `secret_hash` longblob NOT NULL,
  `masked_secret` longblob NOT NULL,
  `secret_made` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_applications_u0 (part, `number`),
  INDEX cryptopay_applications_i0 (part, `tenant`, `number`),
  INDEX cryptopay_applications_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_access_tokens (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `client_id` longblob NOT NULL,
  `application` bigint NOT NULL,
  `scopes` longblob NOT NULL,
  `revoked` bigint NOT NULL,
  `created_at` bigint NOT NULL,
  `expires_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_access_tokens_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_api_keys (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `key_id` varbinary(500) NOT NULL,
  `tenant` varbinary(500) NOT NULL,
  `name` longblob NOT NULL,
  `scopes` longblob NOT NULL,
  `role` longblob NOT NULL,
  `masked_key` longblob NOT NULL,
  `created_at` bigint NOT NULL,
  PRIMARY KEY (part, id),
  UNIQUE INDEX cryptopay_api_keys_u0 (part, `key_id`),
  INDEX cryptopay_api_keys_i0 (part, `tenant`, `created_at`),
  INDEX cryptopay_api_keys_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS cryptopay_application_sequence (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `last_number` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_application_sequence_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
