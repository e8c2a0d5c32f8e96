#!lua
-- Takes due rows of one partition under a lease. A row that moved on since it
-- was read is left alone: that is how two claims never take the same.
--
-- KEYS  1 rows   2 due
-- ARGV  1 partition   2 end of the lease, µs   then id, version, next version …;
--       of a row that cannot be read: id, '', what is stored of it
-- Returns the ids that were taken.
local taken = {}
for i = 3, #ARGV, 3 do
  local id = ARGV[i]
  local stored = redis.call('HGET', KEYS[1], id)
  if ARGV[i + 1] == '' then
    if stored == ARGV[i + 2] then redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1] .. '\0' .. id) end
  elseif stored then
    local row = cmsgpack.unpack(stored)
    if row[1] == ARGV[i + 1] then
      row[1], row[3] = ARGV[i + 2], ARGV[2]
      redis.call('HSET', KEYS[1], id, cmsgpack.pack(row))
      redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1] .. '\0' .. id)
      taken[#taken + 1] = id
    end
  end
end
return taken
