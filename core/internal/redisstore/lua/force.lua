-- Frees the lock, whichever client holds it, and wakes the waiters (RLock.forceUnlock). For a key of another
-- type, Redis returns an error. A hash that is not a plain lock stays: a plain lock has one holder field
-- (holder.lua) with a count and no other field. The read-write lock of Redisson has a mode.
-- KEYS[1] lock hash
-- ARGV[1] channel, empty for none  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 it was held, 0 it was free, -1 the hash is not a plain lock
local hash = redis.call('HGETALL', KEYS[1])
if #hash == 0 then
  return 0
end
if #hash > 2 or not holds(hash[1]) or not string.find(hash[2], '^%d+$') then
  return -1
end
redis.call('DEL', KEYS[1])
notify(ARGV[2], ARGV[1])
return 1
