-- Takes a permit.
-- KEYS[1] number of available permits  KEYS[2] leases
-- ARGV[1] permit, new for this acquisition  ARGV[2] lease in ms
-- ARGV[3] the total number of permits to set; 0 leaves it as it is
-- ARGV[4] channel, empty for none  ARGV[5] PUBLISH or SPUBLISH
-- ARGV[6…] permits of earlier attempts of the same caller, to give back
-- Reply   1 granted (also when the permit is out already, because the same call was executed twice)
--         {ms until the first lease expires, its permit} if none is available
local key, leases, id, time, total = KEYS[1], KEYS[2], ARGV[1], now(), tonumber(ARGV[3])
for i = 6, #ARGV do
  local back = giveBack(key, leases, ARGV[i])
  if type(back) == 'table' then -- an error
    return back
  end
end
collect(key, leases, time, ARGV[5], ARGV[4])
local available
if total > 0 then
  available = adjust(key, leases, total, ARGV[5], ARGV[4])
  if type(available) ~= 'number' then
    return available
  end
else
  available = count(key)
end
if available > 0 then
  local ttl = redis.call('PTTL', key)
  if redis.call('ZADD', leases, 'NX', deadline(time, ARGV[2]), id) == 0 then
    return 1
  end
  local done = ttl > 0 and redis.pcall('PEXPIRE', leases, ttl) or 1
  if done == 1 then
    done = redis.pcall('DECR', key)
  end
  if type(done) ~= 'number' then -- denied: undo
    redis.call('ZREM', leases, id)
    return done
  end
  return 1
end
if lasts(leases, id, time) then
  return 1
end
local first = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')
if #first == 0 then
  return {-1, ''}
end
local ends = tonumber(first[2])
return {ends == never and -1 or ends - time, hex(first[1])}
