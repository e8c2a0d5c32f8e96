-- What is held for a withdrawal is what the recipient gets and the fees. A row that broke
-- that before, which only an edit can have done, keeps the constraint from being added:
-- Migrate names it, and it is corrected first. MySQL has no IF NOT EXISTS here, MariaDB reads it.
ALTER TABLE cryptopay_withdrawals ADD CONSTRAINT /*M! IF NOT EXISTS */ cryptopay_withdrawals_sum
  CHECK (`amount` + `platform_fee` + `network_fee` = `requested` AND `amount` > 0 AND `platform_fee` >= 0 AND `network_fee` >= 0);
