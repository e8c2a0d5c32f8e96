-- chain/incoming: what addresses held of the native coin, when all of it was explained.
CREATE TABLE IF NOT EXISTS cryptopay_holdings (
  `part` varbinary(500) NOT NULL,
  `id` varbinary(500) NOT NULL,
  `version` bigint NOT NULL,
  `change_id` varbinary(500) NOT NULL,
  `due` bigint NOT NULL,
  `amount` longblob NOT NULL,
  `nonce` bigint NOT NULL,
  `height` bigint NOT NULL,
  PRIMARY KEY (part, id),
  INDEX cryptopay_holdings_i0 (part, `height`),
  INDEX cryptopay_holdings_due (due, part, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
