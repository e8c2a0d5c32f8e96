-- incoming: Sightings by state and final_at, and by state and forward, along one index. A
-- Sighting's id begins with its transaction.
DROP INDEX cryptopay_sightings_i0;
DROP INDEX cryptopay_sightings_i2;
DROP INDEX cryptopay_sightings_i3;
CREATE INDEX cryptopay_sightings_i0 ON cryptopay_sightings (part, "state", "forward", "final_at");
-- payment: nothing asks for them by the merchant's order.
DROP INDEX cryptopay_payments_i3;
-- storage: lines of the history by type, status or currency are found by the payments and
-- withdrawals that they are of. The one index left has no column that changes.
DROP INDEX cryptopay_activity_i1;
DROP INDEX cryptopay_activity_i2;
DROP INDEX cryptopay_activity_i3;
