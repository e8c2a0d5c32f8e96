-- The checks, in the order that storage.Change states.

local function already(id, put, drop, level, at, last)
  local posts = at < last
  while at < last do
    if txs[changes[at]] == id then return true end
    at = at + 3 + changes[at + 2]
  end
  for k = 1, put and #put or 0 do
    if row(tables[put[k][1]], put[k][2]).c == id then return true end
  end
  if put or posts or level then return false end
  for k = 1, #drop do
    if row(tables[drop[k][1]], drop[k][2]) ~= absent then return false end
  end
  return true
end

local function stands(list)
  if list then
    for k = 1, #list do
      local r = list[k]
      if row(tables[r[1]], r[2]).v ~= r[3] then return false end
    end
  end
  return true
end

-- unique looks at the state that the Change leaves: a key that one of its own
-- rows gives up may be taken by another of them.
local function unique(put, drop)
  local mine, taken = nil, {}
  local function own(t)
    if not mine then
      mine = {}
      for n = 1, #tables do mine[tables[n]] = {} end
      for k = 1, #put do mine[tables[put[k][1]]][put[k][2]] = put[k] end
      for k = 1, drop and #drop or 0 do mine[tables[drop[k][1]]][drop[k][2]] = false end
    end
    return mine[t]
  end
  for k = 1, #put do
    local p = put[k]
    local t = tables[p[1]]
    for i = 1, #t.index do
      if t.index[i][2] == 1 then
        local key = p[6 + i]
        local h = holder(t, i, key)
        if h and h ~= p[2] then
          local other = own(t)[h]
          if other == nil or other and other[6 + i] == key then return { k - 1, i - 1 } end
        end
        if #put > 1 then
          local name = p[1] .. ' ' .. i .. ' ' .. key
          if taken[name] then return { k - 1, i - 1 } end
          taken[name] = true
        end
      end
    end
  end
end

local places
local function full(accounts)
  if not places then
    places = {}
    for i = 1, #field do places[field[i]] = i end
  end
  for k = 1, #accounts do
    local account = accounts[k]
    local there = call('ZRANGE', kDirectory, '[' .. account .. '\0', '(' .. account .. '\1', 'BYLEX')
    for i = 1, #field do
      if new[i] and sub(field[i], 1, #account + 1) == account .. '\0' then there[#there + 1] = field[i] end
    end
    for n = 1, #there do
      local i = places[there[n]]
      if not i then
        i = #field + 1
        field[i], places[there[n]] = there[n], i
        load(i, call('HGET', kBalances, there[n]))
      end
      if posted[i] ~= '0' or held[i] ~= '0' then return { account, sub(there[n], #account + 2) } end
    end
  end
end

local function raise(list)
  local out, now = {}, {}
  for k = 1, #list do
    local d = list[k]
    local l = level(d[1])
    local h, low = l.h, l.l
    if now[l] then h, low = now[l][1], now[l][2] end
    local toH, toL = add(h, low, d[2], d[3])
    if (d[2] > 0 or d[2] == 0 and d[3] > 0) and (not fits(toH, toL) or less(d[4], d[5], toH, toL)) then
      return nil, { k - 1, text(h, low) }
    end
    if toH < 0 then toH, toL = 0, 0 end
    now[l] = { toH, toL }
    out[#out + 1] = { l, toH, toL }
  end
  return out
end

-- count adds up counters, each in its place behind the Change's own rows. A counter that
-- cannot be read begins at 0, because it is only shown: Recount mends it.
local function count(list, put, drop)
  local out, at = {}, {}
  for k = 1, #list do
    local n = list[k]
    local t, name = tables[n[1]], n[2]
    local i = at[name]
    if not i then
      i = #out + 1
      at[name], out[i] = i, { t, name, 0, 0 }
      local high, low = value(row(t, name))
      if high then out[i][3], out[i][4] = high, low end
      for m = 1, drop and #drop or 0 do
        if tables[drop[m][1]] == t and drop[m][2] == name then out[i][3], out[i][4] = 0, 0 end
      end
      for m = 1, put and #put or 0 do
        if tables[put[m][1]] == t and put[m][2] == name then
          out[i][3], out[i][4] = number(cmsgpack.unpack(put[m][6])[4])
        end
      end
    end
    out[i][3], out[i][4] = add(out[i][3], out[i][4], n[3], n[4])
    if not fits(out[i][3], out[i][4]) then return nil, k - 1 end
  end
  return out
end

local function setCounters(id, sums)
  for k = 1, #sums do
    local t, name = sums[k][1], sums[k][2]
    local was, keys = t.now[name], {}
    for i = 1, #t.index do keys[i] = '' end
    local cols = { format('%d', (tonumber(was.v) or 0) + 1), id, '0', bytes(sums[k][3], sums[k][4]) }
    t.now[name] = { v = cols[1], c = id, due = '0', packed = cmsgpack.pack(cols), keys = keys, cols = cols }
  end
end

-- tell numbers the events behind those of the stream, and makes it due.
local function tell(id, told)
  local streams, events = tables[told[1]], tables[told[2]]
  local r = row(streams, 'stream')
  local h, l = value(r)
  local last, keys = h * E9 + l, {} -- below 10^16, and exact
  for i = 1, #events.index do keys[i] = '' end
  for k = 4, #told do
    last = last + 1
    local name = format('%016d', last)
    events.was[name], events.now[name] = absent, { v = '1', c = id, due = '0', packed = told[k], keys = keys }
  end
  local high = math.floor(last / E9)
  local now, none = { format('%d', tonumber(r.v) + 1), id, told[3], bytes(high, last - high * E9) }, {}
  for i = 1, #streams.index do none[i] = '' end
  streams.now.stream = { v = now[1], c = id, due = now[3], packed = cmsgpack.pack(now), keys = none, cols = now }
end

-- back takes back what move did from at on, up to the leg at stop.
local function back(at, stop)
  local legs = {}
  while at < stop do
    for i = at + 3, math.min(at + 2 + changes[at + 2], stop - 1), 6 do legs[#legs + 1] = i end
    at = at + 3 + changes[at + 2]
  end
  for n = #legs, 1, -1 do
    local i = legs[n]
    local b = changes[i]
    postedH[b], postedL[b] = subtract(postedH[b], postedL[b], changes[i + 2], changes[i + 3])
    heldH[b], heldL[b] = subtract(heldH[b], heldL[b], changes[i + 4], changes[i + 5])
    posted[b], held[b], moved[b] = text(postedH[b], postedL[b]), text(heldH[b], heldL[b]), moved[b] - 1
    if changes[i + 1] ~= '0' then
      seq[b], lines[b][#lines[b]] = seq[b] - 1, nil
    end
  end
end

-- move applies the legs, and takes them back where one of them cannot be.
local function move(first, last)
  local at, n = first, 0
  while at < last do
    if txs[changes[at]] then return { 't', n } end
    at, n = at + 3 + changes[at + 2], n + 1
  end
  at, n = first, 0
  while at < last do
    local id, stop = changes[at], at + 2 + changes[at + 2]
    for i = at + 3, stop, 6 do
      local b, delta, holdH, holdL = changes[i], changes[i + 1], changes[i + 4], changes[i + 5]
      local ph, pl = add(postedH[b], postedL[b], changes[i + 2], changes[i + 3])
      local hh, hl = add(heldH[b], heldL[b], holdH, holdL)
      if not fits(ph, pl) or not fits(hh, hl) or balances[3 * b - 1] == 1 and (hh < 0 or less(ph, pl, hh, hl)) then
        local out = { 'f', n, (i - at - 3) / 6, posted[b], held[b] }
        back(first, i)
        return out
      end
      postedH[b], postedL[b], moved[b] = ph, pl, moved[b] + 1
      if holdH ~= 0 or holdL ~= 0 then heldH[b], heldL[b], held[b] = hh, hl, text(hh, hl) end
      if delta ~= '0' then
        local now = text(ph, pl)
        local line = delta .. ' ' .. now .. ' ' .. id
        posted[b], seq[b] = now, seq[b] + 1
        if lines[b] then lines[b][#lines[b] + 1] = line else lines[b] = { line } end
      end
    end
    at, n = stop + 1, n + 1
  end
end

local function setRows(id, put, drop)
  put, drop = put or {}, drop or {}
  local function release(t, r, keep)
    local keys = prefixes(t, r)
    if not keys then return end
    for i = 1, #t.index do
      if t.index[i][2] == 1 and not (keep and keep[6 + i] == keys[i]) then t.held[i][keys[i]] = false end
    end
  end
  for k = 1, #drop do
    local t, name = tables[drop[k][1]], drop[k][2]
    release(t, t.now[name])
    t.now[name] = absent
  end
  for k = 1, #put do release(tables[put[k][1]], tables[put[k][1]].now[put[k][2]], put[k]) end
  for k = 1, #put do
    local p = put[k]
    local t, keys = tables[p[1]], {}
    for i = 1, #t.index do
      keys[i] = p[6 + i]
      if t.index[i][2] == 1 then t.held[i][keys[i]] = p[2] end
    end
    t.now[p[2]] = { v = p[4], c = id, due = p[5], packed = p[6], keys = keys }
  end
end

-- judge takes the Change at a place, which ends before another.
local function judge(at, stop)
  local id, require, put, drop, level, empty, counted, told = unpack(changes, at, at + 7)
  at = at + 9
  if already(id, put, drop, level or counted or told, at, stop) then return end
  if not (stands(require) and stands(put) and stands(drop)) then return { 'c' } end
  local no = put and unique(put, drop)
  if no then return { 'u', no[1], no[2] } end
  no = empty and full(empty)
  if no then return { 'e', no[1], no[2] } end
  if told and not value(row(tables[told[1]], 'stream')) then return { 'b' } end
  local raised = {}
  if level then
    raised, no = raise(level)
    if no then return { 'l', no[1], no[2] } end
  end
  local sums = {}
  if counted then
    sums, no = count(counted, put, drop)
    if no then return { 'n', no } end
  end
  no = at < stop and move(at, stop)
  if no then return no end

  while at < stop do
    txs[changes[at]] = id
    records[#records + 1] = changes[at]
    records[#records + 1] = changes[at + 1]
    at = at + 3 + changes[at + 2]
  end
  for k = 1, #raised do
    local r = raised[k]
    r[1].h, r[1].l, r[1].dirty = r[2], r[3], true
  end
  if put or drop then setRows(id, put, drop) end
  setCounters(id, sums)
  if told then tell(id, told) end
end

local refused = {}
do
  local at, n = 1, 0
  while changes[at] do
    local stop = at + 9 + changes[at + 8]
    local no = judge(at, stop)
    if no then
      table.insert(no, 1, n)
      refused[#refused + 1] = no
    end
    at, n = stop, n + 1
  end
end
