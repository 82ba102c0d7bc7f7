-- Comes before the scripts of the read-write lock that change a lease, after rw_others.lua and rw_outlast.lua.

-- ending returns the value of interlock_until for a writer with this many ms left.
local function ending(rest)
  return string.format('@%.0f', clock() + rest)
end

-- lasting returns in ms how long the lock has to last for a holder with this lease, while its TTL is
-- ttl: as long as its readers except that holder, and as long as its writer, whose lease is the TTL if no rest is known.
local function lasting(key, field, mode, rest, ttl, lease)
  if mode == 'write' and not rest then
    return math.max(ttl, lease)
  end
  return math.max(longest(key, ttl < 0 and math.huge or ttl, field) or ttl, rest or 0, lease)
end

-- prolong extends the lease of a holder, and the TTL of the lock, which is ttl, to at least this many ms. It returns an
-- error, if there is one; then nothing has changed. It does not touch the timeout keys of a reader.
local function prolong(key, field, mode, rest, ttl, lease)
  local writer, set = writes(field), 1
  local later = writer and rest and rest < lease
  if later then
    set = redis.pcall('HSET', key, 'interlock_until', ending(lease))
  end
  if type(set) == 'number' and ttl < lease then
    set = outlast(key, not writer and mode, ttl, lease)
    if later and type(set) ~= 'number' then -- denied: undo
      redis.call('HSET', key, 'interlock_until', ending(rest))
    end
  end
  return type(set) ~= 'number' and set or nil
end

