-- Writes rows in another form, each only where it is still as it was read.
--
-- KEYS  1 rows   2 … indexes to build
-- ARGV  per row: id, as it was read, as it shall be, then its member of each index
local per = 2 + #KEYS
for i = 1, #ARGV, per do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then
    return redis.error_reply('ERR row ' .. ARGV[i] .. ' changed meanwhile: stop all other processes and migrate again')
  end
end
for i = 1, #ARGV, per do
  if ARGV[i + 1] ~= ARGV[i + 2] then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2]) end
  for k = 2, #KEYS do redis.call('ZADD', KEYS[k], 0, ARGV[i + 1 + k]) end
end
return 0
