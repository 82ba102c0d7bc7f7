-- In front of those scripts of the read-write lock that look at the leases of its readers, behind rw.lua.

-- known says whether a key that is not here is nowhere. While the slot moves, nobody knows: only a
-- command over two keys tells one that is on the other node from one that is gone.
local function known(key, name)
  return type(redis.pcall('EXISTS', key, name)) == 'number'
end

-- left is what a timeout key has of its lease in ms, 0 when it is gone; nil when nobody knows, because
-- the slot moves.
local function left(key, field, n)
  local name = timeout(key, field, n)
  local ttl = redis.pcall('PTTL', name)
  if type(ttl) == 'number' and ttl ~= -2 then
    return ttl < 0 and math.huge or ttl
  end
  if ttl == -2 and known(key, name) then
    return 0
  end
  return nil
end

-- keyless is what a reader without timeout keys has left, in ms. The fields of this library have numbers
-- that no thread has.
local function keyless(key, field)
  if (tonumber(string.match(field, ':(%d+)$')) or 0) > 1099511627776 then
    return 0
  end
  local ttl = redis.call('PTTL', key)
  return ttl < 0 and 30000 or math.min(ttl, 30000)
end

-- longest is the most that a reader has left, 0 when all are dead, nil when nobody knows of one. It
-- looks no further when it has found enough.
local function longest(key, enough)
  local most, sure = 0, true
  local hash = redis.call('HGETALL', key)
  for i = 1, #hash, 2 do
    local count = not writes(hash[i]) and tonumber(hash[i + 1]) or 0
    local own = 0
    for n = count, 1, -1 do
      local ttl = left(key, hash[i], n)
      if ttl and ttl >= enough then
        return ttl
      end
      own, sure = math.max(own, ttl or 0), sure and ttl ~= nil
    end
    if own == 0 and count > 0 then
      own = keyless(key, hash[i])
    end
    most = math.max(most, own)
  end
  return sure and most or nil
end

-- spare is how much longer than its readers a lock may last, in ms: mostly one of them is found soon, and
-- between two commands of a script time may pass.
local spare = 50

-- part takes a holder out of a lock that others have, too. It gives whether somebody else can have it now,
-- or sooner than was to be seen: Redisson's sleep until the end of the writer's lease.
local function part(key, field, count, mode, rest)
  local ttl, writer = redis.call('PTTL', key), writes(field)
  local own = 0
  if ttl < 0 then
    ttl = math.huge
  end
  for n = 1, writer and 0 or count do
    own = math.max(own, left(key, field, n) or 0)
  end
  redis.call('HDEL', key, field)
  local most -- unknown: the TTL is that of the writer, or of another reader whose lease lasts longer
  if writer then
    rest = nil
  end
  if writer or (mode == 'read' or rest) and own >= ttl - spare then
    most = longest(key, ttl - spare)
    most = most and math.max(most, rest or 0)
  end
  if most == 0 then
    redis.call('DEL', key)
    return true
  end
  if writer then
    redis.call('HDEL', key, 'interlock_until')
    redis.call('HSET', key, 'mode', 'read')
  elseif rest and redis.call('HLEN', key) == 3 then -- alone again: what it has left is the TTL
    most = rest
  end
  local fell = most and most < ttl - spare and type(redis.pcall('PEXPIRE', key, most)) == 'number'
  if most and most == rest and (fell or most >= ttl - spare) then
    redis.call('HDEL', key, 'interlock_until')
  end
  return writer or rest ~= nil and fell
end

-- leave takes a holder out of the lock. It gives the message for those who wait, "1" wakes all of a
-- client and "0" one; nil when others have the lock still and nobody else can have it now.
local function leave(key, field, count, mode, rest)
  local writer, free = writes(field), true
  if redis.call('HLEN', key) <= 2 then -- the mode, and this one
    redis.call('DEL', key)
  else
    free = part(key, field, count, mode, rest)
  end
  if not writer then
    drop(key, field, 1, count)
  end
  return free and ((writer or rest) and '1' or '0') or nil
end

