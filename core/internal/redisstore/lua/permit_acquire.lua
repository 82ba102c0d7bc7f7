-- Takes a permit. If the caller states the total, it is in every acquisition, so the count may expire: at the earliest a day
-- after the last acquisition and the end of its lease. adjust makes it again from the total and the permits that are out. A
-- count without a TTL, such as Redisson's, keeps none. The leases do not get this TTL. If Redisson has given it to them, it is
-- raised together with the TTL of the count. Without a total the leases get the TTL of the count, as from Redisson.
-- KEYS[1] number of available permits  KEYS[2] leases
-- ARGV[1] permit, new for this acquisition  ARGV[2] lease in ms
-- ARGV[3] the total number of permits to set; 0 leaves it as it is
-- ARGV[4] channel, empty for none  ARGV[5] PUBLISH or SPUBLISH
-- ARGV[6…] permits of earlier attempts of the same caller, to give back
-- Reply   1 granted (also when the permit is out already, because the same call was executed twice)
--         {ms until the first lease expires, its permit} if none is available
local key, leases, id, time, total = KEYS[1], KEYS[2], ARGV[1], now(), tonumber(ARGV[3])
local hour, ttl, life = 60 * 60 * 1000, redis.call('PTTL', key), nil
local least = math.min(tonumber(ARGV[2]), never) + 24 * hour
if total > 0 and ttl ~= -1 and ttl < least then
  life = string.format('%.0f', least + hour) -- at most once an hour
  redis.call('PEXPIRE', key, life) -- without a count this does nothing: it fails now, not halfway, if PEXPIRE is denied
  if redis.call('PTTL', leases) > 0 then
    redis.call('PEXPIRE', leases, life)
  end
end
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
  if ttl == -2 then
    redis.call('PEXPIRE', key, life)
  end
else
  available = count(key)
end
if available > 0 then
  if redis.call('ZADD', leases, 'NX', deadline(time, ARGV[2]), id) == 0 then
    return 1
  end
  local done = total == 0 and ttl > 0 and redis.pcall('PEXPIRE', leases, ttl) or 1
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
