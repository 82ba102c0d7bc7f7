-- Comes before the scripts of the read-write lock that make it last longer, after rw.lua.

-- outlast makes the lock last for a lease in ms because of a reader. The mode and the TTL of the lock
-- are known. If the TTL was the lease of a writer, outlast records the end of that lease.
local function outlast(key, mode, ttl, lease)
  if mode == 'write' and ttl >= 0 and ttl < tonumber(lease) then
    local noted = redis.pcall('HSETNX', key, 'interlock_until', string.format('@%.0f', clock() + ttl))
    if type(noted) ~= 'number' then
      return noted
    end
  end
  return redis.pcall('PEXPIRE', key, lease)
end

