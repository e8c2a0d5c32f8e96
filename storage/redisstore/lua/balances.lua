#!lua flags=no-writes
-- Reads all balances of some accounts at one moment.
--
-- KEYS  1 balances   2 directory
-- ARGV  accounts
-- Returns field, balance …
local out = {}
for _, account in ipairs(ARGV) do
  for _, field in ipairs(redis.call('ZRANGE', KEYS[2], '[' .. account .. '\0', '(' .. account .. '\1', 'BYLEX')) do
    out[#out + 1] = field
    out[#out + 1] = redis.call('HGET', KEYS[1], field)
  end
end
return out
