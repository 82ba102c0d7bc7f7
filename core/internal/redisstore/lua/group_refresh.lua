-- Sets the lease of a value, up or down. If it falls, waiters are notified, because Redisson sleeps on the lease that it
-- saw. The TTL of the hash never falls: other values may need it.
-- KEYS[1] hash of the group
-- ARGV[1] value and holder  ARGV[2] lease in ms  ARGV[3] channel  ARGV[4] not used
-- Reply   0 not the holder, 1 done, 2 done and notified
local value, mine = split(ARGV[1])
local now, lease = clock(), tonumber(ARGV[2])
local holder, left = holderOf(KEYS[1], value, now)
if holder ~= mine then
  return 0
end
local denied = write(KEYS[1], lease, value .. ':' .. mine .. ':expire_time', string.format('%.0f', now + lease))
if denied then
  return denied
end
if left <= lease then
  return 1
end
notify(ARGV[3])
return 2
