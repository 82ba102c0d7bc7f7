-- Comes before the scripts of the read-write lock that examine the leases of its readers, after rw.lua.

-- known reports whether a key that is not on this node certainly does not exist. While the slot
-- moves, this is not known: only a command over two keys distinguishes a key on the other node from a
-- deleted one.
local function known(key, name)
  return type(noted(redis.pcall('EXISTS', key, name))) == 'number'
end

-- left returns the rest of the lease of a timeout key in ms, 0 if it is gone, nil if that is not
-- known because the slot moves.
local function left(key, field, n)
  local name = timeout(key, field, n)
  local ttl = noted(redis.pcall('PTTL', name))
  if type(ttl) == 'number' and ttl ~= -2 then
    return ttl < 0 and math.huge or ttl
  end
  if ttl == -2 and known(key, name) then
    return 0
  end
  return nil
end

-- keyless returns the ms that a reader without timeout keys has left, at most 30 s unless it lasts as long as the lock. The
-- fields of this library contain numbers that no thread has.
local function keyless(key, field, lasts)
  if (tonumber(string.match(field, ':(%d+)$')) or 0) > 1099511627776 then
    return 0
  end
  local ttl = redis.call('PTTL', key)
  return ttl < 0 and 30000 or lasts and ttl or math.min(ttl, 30000)
end

-- longest returns the longest rest of a reader's lease, 0 if all are dead, nil if the rest of one is
-- not known. It stops when it found enough. It does not count the reader except. See keyless for lasts.
local function longest(key, enough, except, lasts)
  local most, sure = 0, true
  local hash = redis.call('HGETALL', key)
  for i = 1, #hash, 2 do
    local count = hash[i] ~= except and not writes(hash[i]) and tonumber(hash[i + 1]) or 0
    local own = 0
    for n = count, 1, -1 do
      local ttl = left(key, hash[i], n)
      if ttl and ttl >= enough then
        return ttl
      end
      own, sure = math.max(own, ttl or 0), sure and ttl ~= nil
    end
    if own == 0 and count > 0 then
      own = keyless(key, hash[i], lasts)
    end
    most = math.max(most, own)
  end
  return sure and most or nil
end

-- spare is how much longer than its readers a lock may last, in ms. It lets longest stop at an early
-- reader, and covers the time between two commands of a script.
local spare = 50

-- part removes a holder from a lock that has other holders. It returns whether another client can now
-- have the lock, or can have it sooner than was visible: Redisson sleeps until the end of the
-- writer's lease. It also returns whether the TTL may be too long, because the slot moves and a lease is not
-- known. If it clears, it examines the leases of the others in any case, because another reader may have left before.
local function part(key, field, count, mode, rest, clears)
  local ttl, writer = redis.call('PTTL', key), writes(field)
  local own, unsure = 0, false
  if ttl < 0 then
    ttl = math.huge
  end
  for n = 1, writer and 0 or count do
    own = math.max(own, left(key, field, n) or math.huge)
  end
  local most -- nil: the TTL is the lease of the writer, or of another reader whose lease lasts longer
  if writer then
    rest = nil
  end
  local set = writer or own >= ttl - spare -- the TTL may be the lease of this holder; otherwise Redisson may renew it
  if writer or (mode == 'read' or rest) and (set or clears) then
    most = longest(key, ttl - spare, field, clears and not set)
    unsure, most = not most, most and math.max(most, rest or 0)
  end
  if most == 0 then
    redis.call('DEL', key)
    return true, false
  end
  if writer then
    become(key, 'read', mode, {field, 'interlock_until'})
  else
    redis.call('HDEL', key, field)
  end
  if rest and redis.call('HLEN', key) == 3 then -- the writer is alone again: the rest of its lease is the TTL
    most = rest
  end
  local fell = most and most < ttl - spare and type(redis.pcall('PEXPIRE', key, most)) == 'number'
  if most and most == rest and (fell or most >= ttl - spare) then
    redis.call('HDEL', key, 'interlock_until')
  end
  return writer or rest ~= nil and fell, unsure
end

-- leave removes a holder from the lock. It returns the message for the waiters: "1" wakes all of a
-- client and "0" one. It returns nil if other holders remain and no other client can have the lock
-- now. It also returns whether clear has to be called for the holder when the slot has moved, because a
-- timeout key may be left or the TTL may be too long.
local function leave(key, field, count, mode, rest, clears)
  local writer, free, behind = writes(field), true, false
  if redis.call('HLEN', key) <= 2 then -- the mode, and this holder
    redis.call('DEL', key)
  else
    free, behind = part(key, field, count, mode, rest, clears)
  end
  behind = not writer and drop(key, field, 1, count) or behind
  return free and ((writer or rest) and '1' or '0') or nil, behind
end

