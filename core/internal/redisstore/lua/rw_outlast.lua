-- Comes before the scripts of the read-write lock that make it last longer, after rw.lua.

-- outlast makes the lock last for a lease in ms because of a reader. The mode and the TTL of the lock
-- are known. If the TTL was the lease of a writer, outlast records the end of that lease. After an error
-- nothing has changed.
local function outlast(key, mode, ttl, lease)
  if mode == 'write' and ttl >= 0 and ttl < tonumber(lease) then
    local time = redis.pcall('TIME')
    local new = time.err and time or redis.pcall('HSETNX', key, 'interlock_until', string.format('@%.0f', clock(time) + ttl))
    if type(new) ~= 'number' then
      return new
    end
    local leased = redis.pcall('PEXPIRE', key, lease)
    if new == 1 and type(leased) ~= 'number' then -- denied: undo
      redis.call('HDEL', key, 'interlock_until')
    end
    return leased
  end
  return redis.pcall('PEXPIRE', key, lease)
end

