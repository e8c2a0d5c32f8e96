#!lua flags=no-writes
-- Reads rows along an index, both at one moment.
--
-- KEYS  1 index   2 rows
-- ARGV  1 from   2 to, as ZRANGE BYLEX takes them   3 REV or ''   4 offset   5 count
-- Returns the last member read, then id, packed row …
local members
if ARGV[3] == 'REV' then
  members = redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[1], 'BYLEX', 'REV', 'LIMIT', ARGV[4], ARGV[5])
else
  members = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', ARGV[4], ARGV[5])
end
if #members == 0 then return {} end
local ids = {}
for i, m in ipairs(members) do ids[i] = string.sub(m, -2 - string.byte(m, -1), -3) end
local rows = redis.call('HMGET', KEYS[2], unpack(ids))
local out = { members[#members] }
for i = 1, #ids do
  out[#out + 1] = ids[i]
  out[#out + 1] = rows[i]
end
return out
