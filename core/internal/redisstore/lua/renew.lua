-- Raises the TTL of locks that are still held by the given fields. With a lease of 0 it only
-- tells whether they are.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] lease in ms  ARGV[i+1] holder field of KEYS[i]
-- Reply   array of 1 held, 0 not the holder
local lease = tonumber(ARGV[1])
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = redis.call('HEXISTS', key, ARGV[i + 1])
  if lease > 0 and held[i] == 1 and redis.call('PTTL', key) < lease then
    redis.call('PEXPIRE', key, lease)
  end
end
return held
