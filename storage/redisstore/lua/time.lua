#!lua flags=no-writes
-- The time as the server has it.
--
-- KEYS  1 any key of the server that is asked
-- Returns seconds, µs.
return redis.call('TIME')
