-- Gives all permits back whoever holds them, and notifies those who wait.
-- KEYS[1] how many are available  KEYS[2] leases
-- ARGV[1] channel, empty for none  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 some were out, 0 none
local out = redis.call('ZCARD', KEYS[2])
if out == 0 then
  return 0
end
local available = redis.call('INCRBY', KEYS[1], out)
redis.call('DEL', KEYS[2])
publish(ARGV[2], ARGV[1], available)
return 1
