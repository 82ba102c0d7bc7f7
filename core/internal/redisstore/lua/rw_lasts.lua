-- Comes before the scripts of the read-write lock that change a lease, after rw_others.lua and rw_outlast.lua.

-- ending returns the value of interlock_until for a writer with this many ms left.
local function ending(rest)
  return string.format('@%.0f', clock() + rest)
end

-- lasting returns in ms how long the lock has to last for a holder with this lease, while its TTL is
-- ttl: as long as its readers, and as long as its writer, whose lease is the TTL if no rest is known.
local function lasting(key, mode, rest, ttl, lease)
  if mode == 'write' and not rest then
    return math.max(ttl, lease)
  end
  return math.max(longest(key, ttl < 0 and math.huge or ttl) or ttl, rest or 0, lease)
end

-- prolong extends the lease of a holder, and the TTL of the lock, to at least this many ms. It returns an
-- error, if there is one. It does not touch the timeout keys of a reader.
local function prolong(key, field, mode, rest, lease)
  local writer, ttl, set = writes(field), redis.call('PTTL', key), 1
  if ttl < lease then
    set = outlast(key, not writer and mode, ttl, lease)
  end
  if type(set) == 'number' and writer and rest and rest < lease then
    set = redis.pcall('HSET', key, 'interlock_until', ending(lease))
  end
  return type(set) ~= 'number' and set or nil
end

