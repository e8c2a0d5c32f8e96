-- incoming: Sightings by state and final_at, and by state and forward, along one index. A
-- Sighting's id begins with its transaction.
ALTER TABLE cryptopay_sightings DROP INDEX cryptopay_sightings_i0, ADD INDEX cryptopay_sightings_i0 (part, `state`, `forward`, `final_at`);
DROP INDEX /*M! IF EXISTS */ cryptopay_sightings_i2 ON cryptopay_sightings;
DROP INDEX /*M! IF EXISTS */ cryptopay_sightings_i3 ON cryptopay_sightings;
-- payment: nothing asks for them by the merchant's order.
DROP INDEX /*M! IF EXISTS */ cryptopay_payments_i3 ON cryptopay_payments;
-- storage: lines of the history by type, status or currency are found by the payments and
-- withdrawals that they are of. The one index left has no column that changes.
DROP INDEX /*M! IF EXISTS */ cryptopay_activity_i1 ON cryptopay_activity;
DROP INDEX /*M! IF EXISTS */ cryptopay_activity_i2 ON cryptopay_activity;
DROP INDEX /*M! IF EXISTS */ cryptopay_activity_i3 ON cryptopay_activity;
