#!lua
-- First of three pieces that make one script: judge.lua and store.lua follow.
--
-- It commits Changes of one partition: judges all of them first, each over what
-- those before it did, and then stores the net effect. Judging writes
-- nothing, and storing cannot fail: a script has no rollback.
--
-- KEYS  1 transactions (hash id → change NUL kind NUL ref NUL µs)
--       2 balances (hash account NUL asset → posted held seq)
--       3 directory (sorted set of the fields of 2)
--       4 levels (hash name → value)
--       then, in any number and named by their position in ARGV: histories
--       (lists), rows (hashes), due and index sets, sets of partitions
-- ARGV  1 one MessagePack array: partition, balances, tables, changes
--         balances  field, 1 where it has a floor, KEYS of its history; and so on
--         tables    {KEYS of rows, of due, of partitions, {index …}} each
--         index     {KEYS of the set, 1 where unique, column …}
--         changes   id, require, put, drop, level, empty, count, tell (false for none),
--                   how many places its posts take, posts; and so on
--         require   {table, id, version} each           drop the same
--         put       {table, id, version, new version, due µs, packed row, prefix per index} each
--         level     {name, delta high, low, max high, low} each
--         empty     account each
--         count     {table of counters, name, delta high, low} each
--         tell      table of streams, of events, due µs, packed row of each event
--         posts     id, record, how many places its legs take, legs; and so on
--         legs      balance, delta, delta high, low, hold high, low; and so on
--         (Many small arrays cost more than all else that this script does.)
-- Returns one array per Change that did not happen: its position from 0, then
--         'c' a version differs     'u' put, index: key is taken
--         't' post: id is taken     'e' account, asset: not empty
--         'n' count: it overflows
--         'l' level, value          'f' post, leg, posted, held before it
--         'b' the stream cannot be read
--
-- Numbers of Lua are doubles. An amount is therefore never one number, but two:
-- high·10⁹ + low with 0 ≤ low < 10⁹, each of them exact.

local call, byte, sub, format, match = redis.call, string.byte, string.sub, string.format, string.match
local tonumber, unpack, min = tonumber, unpack, math.min
local kTxs, kBalances, kDirectory, kLevels = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local E9 = 1000000000

local function parse(s)
  if s == '0' then return 0, 0 end
  local negative = byte(s) == 45
  if negative then s = sub(s, 2) end
  local high, low = 0, 0
  if #s > 9 then high, low = tonumber(sub(s, 1, -10)), tonumber(sub(s, -9)) else low = tonumber(s) end
  if negative then
    high = -high
    if low > 0 then high, low = high - 1, E9 - low end
  end
  return high, low
end

local function text(high, low)
  local sign = ''
  if high < 0 then
    sign, high = '-', -high
    if low > 0 then high, low = high - 1, E9 - low end
  end
  if high == 0 then return sign .. low end
  return format('%s%d%09d', sign, high, low)
end

local function add(ah, al, bh, bl)
  local high, low = ah + bh, al + bl
  if low >= E9 then high, low = high + 1, low - E9 end
  return high, low
end

local function subtract(ah, al, bh, bl)
  local high, low = ah - bh, al - bl
  if low < 0 then high, low = high - 1, low + E9 end
  return high, low
end

-- fits: within 64 bits with a sign.
local function fits(high, low)
  return (high < 9223372036 or high == 9223372036 and low <= 854775807)
    and (high > -9223372037 or high == -9223372037 and low >= 145224192)
end

local function less(ah, al, bh, bl) return ah < bh or ah == bh and al < bl end

-- bulk runs a command over a list, as many at a time as Lua's stack takes.
local function bulk(cmd, key, list)
  if #list == 1 then return call(cmd, key, list[1]) end
  for i = 1, #list, 2000 do call(cmd, key, unpack(list, i, min(i + 1999, #list))) end
end

local function lookup(key, fields)
  local out = {}
  for i = 1, #fields, 2000 do
    local some = call('HMGET', key, unpack(fields, i, min(i + 1999, #fields)))
    for j = 1, #some do out[i + j - 1] = some[j] end
  end
  return out
end

local input = cmsgpack.unpack(ARGV[1])
local partition, balances, tables, changes = input[1], input[2], input[3], input[4]

-- What is stored, as the Changes so far have left it.

-- Balances, each in its place of every list. Their texts are kept beside their
-- numbers: making them costs more than reckoning.
local field, new = {}, {}
local posted, postedH, postedL, held, heldH, heldL, seq = {}, {}, {}, {}, {}, {}, {}
local moved, lines = {}, {}

local function load(i, stored)
  moved[i], lines[i] = 0, false
  if stored then
    posted[i], held[i], seq[i] = match(stored, '^(%S+) (%S+) (%d+)$')
    postedH[i], postedL[i] = parse(posted[i])
    heldH[i], heldL[i] = parse(held[i])
    new[i], seq[i] = false, tonumber(seq[i])
  else
    posted[i], postedH[i], postedL[i], held[i], heldH[i], heldL[i] = '0', 0, 0, '0', 0, 0
    new[i], seq[i] = true, 0
  end
end

for i = 1, #balances / 3 do field[i] = balances[3 * i - 2] end
do
  local stored = lookup(kBalances, field)
  for i = 1, #field do load(i, stored[i]) end
end

local txs, records = {}, {} -- the Change that posted it, and what is to store
do
  local ids, at = {}, 1
  while changes[at] do
    local last = at + 8 + changes[at + 8]
    at = at + 9
    while at <= last do
      ids[#ids + 1] = changes[at]
      at = at + 3 + changes[at + 2]
    end
  end
  local stored = lookup(kTxs, ids)
  for i = 1, #ids do
    if stored[i] then
      local by = match(stored[i], '^[^%z]*')
      txs[ids[i]] = by ~= '' and by or ids[i]
    end
  end
end

for i = 1, #tables do
  local t = tables[i]
  tables[i] = { rows = KEYS[t[1]], due = KEYS[t[2]], known = KEYS[t[3]], index = t[4], now = {}, was = {}, held = {} }
  for k = 1, #t[4] do tables[i].held[k] = {} end
end

local absent = { v = '0' }

-- A row that cannot be read has a version that no Change relies on.
local function row(t, id)
  local r = t.now[id]
  if r then return r end
  r = absent
  local stored = call('HGET', t.rows, id)
  if stored then
    local ok, cols = pcall(cmsgpack.unpack, stored)
    if ok and type(cols) == 'table' and type(cols[3]) == 'string' and type(cols[4]) == 'string' then
      r = { v = cols[1], c = cols[2], due = cols[3], cols = cols }
    else
      r = { v = 'broken', due = '0' }
    end
  end
  t.now[id], t.was[id] = r, r
  return r
end

-- prefixes are what the row's members begin with in each index.
local function prefixes(t, r)
  if not r.keys and r.cols then
    r.keys = {}
    for i = 1, #t.index do
      local x, parts = t.index[i], {}
      for k = 3, #x do parts[k - 2] = r.cols[3 + x[k]] end
      r.keys[i] = table.concat(parts)
    end
  end
  return r.keys
end

-- A counter, and a stream, is a row of one column, eight bytes that begin with the highest and compare
-- as numbers do: 2^63 is added.
local function number(bytes)
  local h, l = 0, 0
  for k = 1, 8 do
    l = l * 256 + byte(bytes, k)
    local carry = math.floor(l / E9)
    h, l = h * 256 + carry, l - carry * E9
  end
  return subtract(h, l, 9223372036, 854775808)
end

-- value is what a counter's or a stream's row holds, nothing where that cannot be read.
local function value(r)
  local cols = r.cols or r.packed and cmsgpack.unpack(r.packed)
  if r == absent then return 0, 0 end
  if cols and #cols[4] == 8 and tonumber(r.v) then return number(cols[4]) end
end

local function bytes(h, l)
  h, l = add(h, l, 9223372036, 854775808)
  local out = {}
  for k = 8, 1, -1 do
    local over = h % 256
    h, l = (h - over) / 256, over * E9 + l
    local low = l % 256
    l = (l - low) / 256
    out[k] = string.char(low)
  end
  return table.concat(out)
end

local function tail(id) return id .. '\0' .. string.char(#id) end

local function holder(t, i, prefix)
  local h = t.held[i][prefix]
  if h == nil then
    local found = call('ZRANGE', KEYS[t.index[i][1]], '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
    h = found and sub(found, -2 - byte(found, -1), -3) or false
    t.held[i][prefix] = h
  end
  return h
end

local levels = {}
local function level(name)
  local l = levels[name]
  if not l then
    l = {}
    l.h, l.l = parse(call('HGET', kLevels, name) or '0')
    levels[name] = l
  end
  return l
end
