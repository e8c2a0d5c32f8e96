-- Everything is judged. What will be written and was not read is asked first:
-- something else in its place ends the script here, while nothing is written.

call('ZCARD', kDirectory)
for i = 1, #field do
  if lines[i] then
    local there, must = call('LLEN', KEYS[balances[3 * i]]), seq[i] - #lines[i]
    if there ~= must then
      return redis.error_reply('ERR the history ' .. format('%q', field[i]) .. ' has ' .. there .. ' lines and not ' .. must .. ': it was changed by hand')
    end
  end
end
for i = 1, #tables do
  call('ZCARD', tables[i].due)
  call('SCARD', tables[i].known)
  for k = 1, #tables[i].index do call('ZCARD', KEYS[tables[i].index[k][1]]) end
end

-- From here on there are writes only.

bulk('HSET', kTxs, records)
do
  local set, add = {}, {}
  for i = 1, #field do
    if moved[i] > 0 then
      set[#set + 1] = field[i]
      set[#set + 1] = posted[i] .. ' ' .. held[i] .. ' ' .. format('%d', seq[i])
      if new[i] then
        add[#add + 1] = 0
        add[#add + 1] = field[i]
      end
      if lines[i] then bulk('RPUSH', KEYS[balances[3 * i]], lines[i]) end
    end
  end
  bulk('HSET', kBalances, set)
  bulk('ZADD', kDirectory, add)
end
for name, l in pairs(levels) do
  if l.dirty then call('HSET', kLevels, name, text(l.h, l.l)) end
end

local function live(r) return r ~= absent and r.due ~= '0' and byte(r.due) ~= 45 end

local function store(t)
  local set, del, due, undue, new = {}, {}, {}, {}, false
  local ins, rem = {}, {}
  for i = 1, #t.index do ins[i], rem[i] = {}, {} end
  for id, r in pairs(t.now) do
    local was = t.was[id]
    if r ~= was then
      if r == absent then
        del[#del + 1] = id
      else
        set[#set + 1] = id
        set[#set + 1] = r.packed
        new = new or was == absent
      end
      if live(r) then
        if not live(was) or r.due ~= was.due then
          due[#due + 1] = r.due
          due[#due + 1] = partition .. '\0' .. id
        end
      elseif live(was) then
        undue[#undue + 1] = partition .. '\0' .. id
      end
      local before, after, last = prefixes(t, was), r.keys, tail(id)
      for i = 1, #t.index do
        if before and not (after and after[i] == before[i]) then rem[i][#rem[i] + 1] = before[i] .. last end
        if after and not (before and after[i] == before[i]) then
          ins[i][#ins[i] + 1] = 0
          ins[i][#ins[i] + 1] = after[i] .. last
        end
      end
    end
  end
  bulk('HDEL', t.rows, del)
  bulk('HSET', t.rows, set)
  bulk('ZREM', t.due, undue)
  bulk('ZADD', t.due, due)
  if new then call('SADD', t.known, partition) end
  for i = 1, #t.index do
    bulk('ZREM', KEYS[t.index[i][1]], rem[i])
    bulk('ZADD', KEYS[t.index[i][1]], ins[i])
  end
end
for i = 1, #tables do store(tables[i]) end

return refused
