-- Frees the lock whoever holds it, and wakes the waiters (RLock.forceUnlock).
-- KEYS[1] lock hash
-- ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 it was held, 0 it was free
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.pcall(ARGV[2], ARGV[1], '0')
return 1
