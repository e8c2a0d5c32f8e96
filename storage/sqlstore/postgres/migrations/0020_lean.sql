-- incoming: Sightings by state and final_at, and by state and forward, along one index. It is
-- made before the old ones go, so that readers wait for no more than their end. A Sighting's id
-- begins with its transaction.
CREATE INDEX cryptopay_sightings_new ON cryptopay_sightings (part, "state", "forward", "final_at");
DROP INDEX cryptopay_sightings_i0;
DROP INDEX cryptopay_sightings_i2;
DROP INDEX cryptopay_sightings_i3;
ALTER INDEX cryptopay_sightings_new RENAME TO cryptopay_sightings_i0;
-- payment: nothing asks for them by the merchant's order.
DROP INDEX cryptopay_payments_i3;
-- storage: lines of the history by type, status or currency are found by the payments and
-- withdrawals that they are of. The one index left has no column that changes.
DROP INDEX cryptopay_activity_i1;
DROP INDEX cryptopay_activity_i2;
DROP INDEX cryptopay_activity_i3;
