-- What is held for a withdrawal is what the recipient gets and the fees. SQLite cannot add
-- a CHECK to a table, so triggers refuse what would break that. They do not look at
-- rows that broke it before: those are not paid, and Verify names them.
CREATE TRIGGER IF NOT EXISTS cryptopay_withdrawals_made BEFORE INSERT ON cryptopay_withdrawals
WHEN NEW."amount" + NEW."platform_fee" + NEW."network_fee" <> NEW."requested" OR NEW."amount" <= 0 OR NEW."platform_fee" < 0 OR NEW."network_fee" < 0
BEGIN SELECT RAISE(ABORT, 'cryptopay_withdrawals_sum: amount and fees are not what was requested'); END;
CREATE TRIGGER IF NOT EXISTS cryptopay_withdrawals_kept BEFORE UPDATE OF "amount", "platform_fee", "network_fee", "requested" ON cryptopay_withdrawals
WHEN (NEW."amount" + NEW."platform_fee" + NEW."network_fee" <> NEW."requested" OR NEW."amount" <= 0 OR NEW."platform_fee" < 0 OR NEW."network_fee" < 0)
AND (NEW."amount" <> OLD."amount" OR NEW."platform_fee" <> OLD."platform_fee" OR NEW."network_fee" <> OLD."network_fee" OR NEW."requested" <> OLD."requested")
BEGIN SELECT RAISE(ABORT, 'cryptopay_withdrawals_sum: amount and fees are not what was requested'); END;
