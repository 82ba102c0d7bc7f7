-- Raises the lease of a permit that is out. A permit always has one hold.
-- KEYS[1] leases
-- ARGV[1] permit  ARGV[2] hold count  ARGV[3] lease in ms to which it is raised, 0 leaves it
-- Reply   1 done, 0 not the holder
local id, time = ARGV[1], now()
local ends = lasts(KEYS[1], id, time)
if not ends then
  return 0
end
if ends < time + ARGV[3] then
  redis.call('ZADD', KEYS[1], deadline(time, ARGV[3]), id)
end
return 1
