-- What is held for a withdrawal is what the recipient gets and the fees. Rows that broke
-- that before are left as they are: those are not paid, and Verify names them.
ALTER TABLE cryptopay_withdrawals ADD CONSTRAINT cryptopay_withdrawals_sum
  CHECK ("amount" + "platform_fee" + "network_fee" = "requested" AND "amount" > 0 AND "platform_fee" >= 0 AND "network_fee" >= 0) NOT VALID;
