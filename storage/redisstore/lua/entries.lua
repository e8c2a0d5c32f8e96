#!lua flags=no-writes
-- Reads a piece of an account's history, newest first.
--
-- KEYS  1 history   2 transactions
-- ARGV  1 read below this seq, 0 for all   2 how many at most
-- Returns the seq of the first, then line, transaction …
local last, max = redis.call('LLEN', KEYS[1]), tonumber(ARGV[2])
local before = tonumber(ARGV[1])
if before > 0 and before <= last then last = before - 1 end
if last < 1 or max < 1 then return { 0 } end
local lines = redis.call('LRANGE', KEYS[1], math.max(0, last - max), last - 1)
local out = { last }
for i = #lines, 1, -1 do
  out[#out + 1] = lines[i]
  out[#out + 1] = redis.call('HGET', KEYS[2], string.match(lines[i], '^%S+ %S+ (.*)$')) or false
end
return out
