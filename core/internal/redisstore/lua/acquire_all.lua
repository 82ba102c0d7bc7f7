-- Takes several free locks, or none. All keys are in one slot, or there is no Cluster.
-- KEYS    lock hashes
-- ARGV[1] holder field, new for this acquisition  ARGV[2] lease in ms
-- Reply   1 granted
--         {ttl in ms, a holder's field, index of the key} of the first held key
for i, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 and redis.call('HEXISTS', key, ARGV[1]) == 0 then
    return {redis.call('PTTL', key), redis.call('HKEYS', key)[1], i}
  end
end
local taken = {}
for _, key in ipairs(KEYS) do
  if redis.call('HEXISTS', key, ARGV[1]) == 0 then
    redis.call('HSET', key, ARGV[1], 1)
    taken[#taken + 1] = key
    local leased = redis.pcall('PEXPIRE', key, ARGV[2])
    if type(leased) ~= 'number' then -- denied: undo, because a lock without a lease would never expire
      for _, own in ipairs(taken) do
        redis.call('HDEL', own, ARGV[1])
      end
      return leased
    end
  end
end
return 1
