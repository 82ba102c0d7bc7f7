-- In front of those scripts of the read-write lock that have it last longer, behind rw.lua.

-- outlast has the lock, of which this mode and TTL are known, last for a lease in ms because of a reader.
-- Where the TTL was the lease of a writer, that is noted.
local function outlast(key, mode, ttl, lease)
  if mode == 'write' and ttl >= 0 and ttl < tonumber(lease) then
    local noted = redis.pcall('HSETNX', key, 'interlock_until', string.format('@%.0f', clock() + ttl))
    if type(noted) ~= 'number' then
      return noted
    end
  end
  return redis.pcall('PEXPIRE', key, lease)
end

