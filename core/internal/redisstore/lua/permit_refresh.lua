-- Sets the lease of a permit that is out, up or down. If it falls, waiters are notified, because Redisson
-- sleeps on the deadline that it saw.
-- KEYS[1] leases
-- ARGV[1] permit  ARGV[2] lease in ms  ARGV[3] channel, empty for none  ARGV[4] PUBLISH or SPUBLISH
-- Reply   0 not the holder, 1 done, 2 done and notified
local id, time = ARGV[1], now()
local before = lasts(KEYS[1], id, time)
if not before then
  return 0
end
redis.call('ZADD', KEYS[1], deadline(time, ARGV[2]), id)
if ARGV[3] == '' or before <= time + ARGV[2] then
  return 1
end
publish(ARGV[4], ARGV[3], 1)
return 2
