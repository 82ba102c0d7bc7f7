-- Sets the hold count of a holder: re-entry and partial release. It never creates the lock and never lowers
-- its TTL.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] hold count  ARGV[3] lease in ms to which the TTL is raised, 0 leaves it
-- Reply   1 done, 0 not the holder
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local lease = tonumber(ARGV[3])
local before = lease > 0 and redis.call('PTTL', KEYS[1]) or lease
if before < lease then
  redis.call('PEXPIRE', KEYS[1], lease) -- first: if it is denied, nothing has changed
end
local set = redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2])
if type(set) ~= 'number' then -- denied: undo
  if before >= 0 and before < lease then
    redis.call('PEXPIRE', KEYS[1], before)
  end
  return set
end
return 1
