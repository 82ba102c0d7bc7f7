-- In front of those scripts of the read-write lock that change a lease, behind rw_others.lua and rw_outlast.lua.

-- ending is the value of that field for a writer who has this left in ms.
local function ending(rest)
  return string.format('@%.0f', clock() + rest)
end

-- lasting is how long the lock is to last whose holders were left with ttl, in ms, for one with this
-- lease: as long as its readers do, and as a writer does, whose lease is the TTL if no rest is known.
local function lasting(key, mode, rest, ttl, lease)
  if mode == 'write' and not rest then
    return math.max(ttl, lease)
  end
  return math.max(longest(key, ttl < 0 and math.huge or ttl) or ttl, rest or 0, lease)
end

-- prolong has the lease of a holder last for so many ms, and the lock too, if they do not. It gives the
-- error, if there is one. The timeout keys of a reader are not its business.
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

