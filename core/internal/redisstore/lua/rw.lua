-- Comes before the scripts of the read-write lock (RReadWriteLock): a hash with the field "mode", which is
-- "read" or "write", a field with a count for every reader, and a field for the writer, which ends in
-- ":write". A reader has a timeout key for each of its counts, with the lease of that hold. A reader without
-- timeout keys is dead and no longer holds the lock. A Redisson reader may be alive although those keys are
-- gone: Redisson 3.44 to 4.3 renew all the locks that a client reads, but the timeout keys of the first lock
-- only. So such a reader lasts as long as the lock, unless the TTL of the lock is too long to be renewed.
-- rw_others.lua handles the leases of other readers.
-- A writer's lease is the TTL of the lock. While readers inside it make the lock last longer, the field
-- "interlock_until" contains the end of the lease of the writer after an "@": Redisson does not treat a value
-- that is not a number as a holder. A script that finds that this time has passed removes the writer, and
-- readers hold the lock from then on.
-- The scripts declare the lock only, because a script over several keys fails while their slot moves to
-- another node. A command to a key that is already on the other node also fails, so the scripts use pcall for it.
-- On the node that receives the slot, a key that has not arrived looks absent; see doc.go.
local function beside(key, name)
  if string.find(key, '{', 1, true) then
    return key .. ':' .. name
  end
  return '{' .. key .. '}:' .. name
end

local function timeout(key, field, n)
  return beside(key, field .. ':rwlock_timeout:' .. n)
end

-- waiting returns the key of the mark of a writer that waits for readers. No other library uses it.
local function waiting(key)
  return beside(key, 'interlock_writer')
end

local function writes(field)
  return string.sub(field, -6) == ':write'
end

-- clock returns the time of the server in ms.
local function clock(now)
  now = now or redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end

-- become changes the mode and removes fields.
local function become(key, mode, before, fields)
  redis.call('HSET', key, 'mode', mode)
  if type(redis.pcall('HDEL', key, unpack(fields))) ~= 'number' then -- denied: undo
    redis.call('HSET', key, 'mode', before)
    redis.call('HDEL', key, unpack(fields)) -- raises the error unchanged
  end
end

-- look returns the value of a field, the mode, and the rest of the lease in ms of a writer with
-- readers inside it that make the lock last longer, nil if there is none. It removes a writer whose
-- lease has expired.
local function look(key, field)
  local found = redis.call('HMGET', key, field, 'mode', 'interlock_until')
  if not found[3] then
    return found[1], found[2], nil
  end
  local rest = tonumber(string.sub(found[3], 2)) - clock()
  if rest > 0 then
    return found[1], found[2], rest
  end
  local ended = {'interlock_until'}
  for _, holder in ipairs(redis.call('HKEYS', key)) do
    if writes(holder) then
      ended[#ended + 1] = holder
    end
  end
  become(key, 'read', found[2], ended)
  return look(key, field)
end

-- refused is the error of a command about a timeout key, unless the slot moves; see noted.
local refused
local function noted(reply)
  if type(reply) == 'table' and not string.find(reply.err, 'non local key', 1, true) then
    refused = reply
  end
  return reply
end

-- apart returns the reply for a timeout key of a reader that is, or may be, on another node than the
-- lock, or that Redis refused to show.
local function apart()
  return refused or redis.error_reply('TRYAGAIN the slot of the lock moves')
end

-- drop deletes the timeout keys of a reader from the n-th on, the last one first. It stops at a key that
-- may be on the other node, and reports that. The keys before it then exist, until clear deletes them.
local function drop(key, field, n, count)
  for i = count, n, -1 do
    local name = timeout(key, field, i)
    if redis.pcall('DEL', name) ~= 1 and type(redis.pcall('EXISTS', key, name)) ~= 'number' then
      return true
    end
  end
  return false
end

-- refusal returns the holder that refuses the caller: the writer, with the rest of its lease, or any
-- reader.
local function refusal(key, rest)
  local holder
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if field ~= 'mode' and field ~= 'interlock_until' and (not holder or writes(field)) then
      holder = field
    end
  end
  return {rest or redis.call('PTTL', key), holder}
end

-- passing turns an error that is caused by the move of a slot into a temporary one.
local function passing(reply)
  if string.find(reply.err, 'non local key', 1, true) then
    return apart()
  end
  return reply
end

