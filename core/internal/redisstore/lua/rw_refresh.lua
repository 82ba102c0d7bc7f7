-- Sets the TTL of a holder, up or down; for a reader the TTL of its timeout keys. The TTL of the lock follows,
-- as far as the other holders allow. If it falls, waiters are notified, because Redisson sleeps on the TTL
-- that it saw. A failure to publish is ignored.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] lease in ms  ARGV[3] channel  ARGV[4] PUBLISH or SPUBLISH
-- Reply   0 not the holder, 1 done, 2 done and notified
local key, field, lease = KEYS[1], ARGV[1], tonumber(ARGV[2])
local count, mode, rest = look(key, field)
if not count then
  return 0
end
local before, writer = redis.call('PTTL', key), writes(field)
local timeouts = writer and 0 or tonumber(count)
for n = 1, timeouts do
  local ttl = left(key, field, n)
  if not ttl then -- the timeout key cannot be extended
    return apart()
  elseif ttl == 0 then
    return 0
  end
end
local ttl = lasting(key, field, writer and 'read' or mode, not writer and rest or nil, before, lease)
if writer and ttl > lease then -- first: without interlock_until, the TTL is the lease of the writer
  redis.call('HDEL', key, '') -- removes nothing: it fails now, not halfway, if HDEL is denied
  redis.call('HSET', key, 'interlock_until', ending(lease))
elseif writer and rest then
  redis.call('HSET', key, 'mode', mode) -- changes nothing: it fails now, not halfway, if HSET is denied
  redis.call('HDEL', key, 'interlock_until')
end
local set = outlast(key, not writer and mode, before, ttl)
if type(set) ~= 'number' then -- denied: undo
  if writer and rest then
    redis.call('HSET', key, 'interlock_until', ending(rest))
  elseif writer and ttl > lease then
    redis.call('HDEL', key, 'interlock_until')
  end
  return set
end
for n = 1, timeouts do
  set = redis.pcall('PEXPIRE', timeout(key, field, n), lease)
  if type(set) ~= 'number' then
    return passing(set)
  end
end
if before >= 0 and before <= ttl then
  return 1
end
redis.pcall(ARGV[4], ARGV[3], writer and '1' or '0')
return 2
