-- Replaces a permit with another one. If its lease becomes shorter, waiters are notified.
-- KEYS[1] leases
-- ARGV[1] old permit  ARGV[2] new permit  ARGV[3] lease in ms of the new one
-- ARGV[4] channel, empty for none  ARGV[5] PUBLISH or SPUBLISH
-- Reply   0 the old permit is not held
--         1 replaced (also when the new permit is out already: the same call, executed twice)
--         2 replaced and notified
local time, from, to = now(), ARGV[1], ARGV[2]
if lasts(KEYS[1], to, time) then
  return 1
end
local before = lasts(KEYS[1], from, time)
if not before then
  return 0
end
redis.call('ZREM', KEYS[1], '') -- removes nothing: it fails now, not halfway, if ZREM is denied
redis.call('ZADD', KEYS[1], deadline(time, ARGV[3]), to)
redis.call('ZREM', KEYS[1], from)
if ARGV[4] == '' or before <= time + ARGV[3] then
  return 1
end
publish(ARGV[5], ARGV[4], 1)
return 2
