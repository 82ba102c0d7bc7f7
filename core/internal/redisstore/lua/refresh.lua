-- Sets the TTL of a held lock, up or down. If it falls, waiters are notified, because Redisson sleeps on the
-- TTL that it saw. A failure to publish is ignored.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] lease in ms  ARGV[3] channel, empty for none  ARGV[4] PUBLISH or SPUBLISH
-- Reply   0 not the holder, 1 done, 2 done and notified
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local before = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[3] == '' or before >= 0 and before <= tonumber(ARGV[2]) then
  return 1
end
notify(ARGV[4], ARGV[3])
return 2
