-- The unified history is read in one order, by created_at and id: a page goes on behind
-- the last row of the page before.
DROP INDEX cryptopay_activity_i0;
CREATE INDEX cryptopay_activity_i0 ON cryptopay_activity (part, "created_at", "id");
DROP INDEX cryptopay_activity_i1;
CREATE INDEX cryptopay_activity_i1 ON cryptopay_activity (part, "kind", "created_at", "id");
DROP INDEX cryptopay_activity_i2;
CREATE INDEX cryptopay_activity_i2 ON cryptopay_activity (part, "status", "created_at", "id");
DROP INDEX cryptopay_activity_i3;
CREATE INDEX cryptopay_activity_i3 ON cryptopay_activity (part, "currency", "created_at", "id");
