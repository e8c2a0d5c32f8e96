-- Counts one request against all rules, or against none.
-- KEYS[i]: the counter of rule i, a hash of start (µs) and count.
-- ARGV: now (µs), then max and window (µs) of each rule.
-- Returns start and count of each window as it stood before the request.
-- Times have 16 digits: Lua keeps them exactly, but must not print them itself.
local now = tonumber(ARGV[1])
local out, allowed = {}, true
for i, key in ipairs(KEYS) do
  local max, window = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local w = redis.call('HMGET', key, 'start', 'count')
  local start, count = w[1], w[2]
  if not start or not count or now >= tonumber(start) + window then
    start, count = ARGV[1], '0'
  elseif now < tonumber(start) then -- the clock was set back
    start = ARGV[1]
  end
  if tonumber(count) >= max then
    allowed = false
  end
  out[2 * i - 1], out[2 * i] = start, count
end
if allowed then
  for i, key in ipairs(KEYS) do
    local start, window = out[2 * i - 1], tonumber(ARGV[2 * i + 1])
    redis.call('HSET', key, 'start', start, 'count', tonumber(out[2 * i]) + 1)
    -- A minute more than what is left, as clocks differ.
    local left = math.ceil((tonumber(start) + window - now) / 1000) + 60000
    redis.call('PEXPIRE', key, string.format('%d', left))
  end
end
return out
