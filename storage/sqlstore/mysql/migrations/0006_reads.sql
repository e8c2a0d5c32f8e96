-- The unified history is read in one order, by created_at and id: a page goes on behind
-- the last row of the page before.
ALTER TABLE cryptopay_activity DROP INDEX cryptopay_activity_i0, ADD INDEX cryptopay_activity_i0 (part, `created_at`, `id`);
ALTER TABLE cryptopay_activity DROP INDEX cryptopay_activity_i1, ADD INDEX cryptopay_activity_i1 (part, `kind`, `created_at`, `id`);
ALTER TABLE cryptopay_activity DROP INDEX cryptopay_activity_i2, ADD INDEX cryptopay_activity_i2 (part, `status`, `created_at`, `id`);
ALTER TABLE cryptopay_activity DROP INDEX cryptopay_activity_i3, ADD INDEX cryptopay_activity_i3 (part, `currency`, `created_at`, `id`);
