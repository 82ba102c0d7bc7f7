-- Takes free values of a group, or none. Only this script creates a holder.
-- KEYS[1] hash of the group
-- ARGV[1] value and holder; the holder is new for this acquisition  ARGV[2] lease in ms  ARGV[3…] further values with
--         the same holder
-- Reply   1 granted (also when the holder has the values already, because the same call was executed twice)
--         {ttl in ms, a holder, index of the value from 1} of the first value that another client holds
local key, now, stale = KEYS[1], clock(), {}
local function each(act)
  for i = 1, #ARGV do
    if i ~= 2 then
      local value, holder = split(ARGV[i])
      local reply = act(value, holder, i == 1 and 1 or i - 1)
      if reply then
        return reply
      end
    end
  end
end
local refusal = each(function(value, mine, index)
  local holder, left = holderOf(key, value, now)
  if holder and holder ~= mine then
    if left > 0 then
      return {left, holder, index}
    end
    stale[value] = holder
  end
end)
if refusal then
  return refusal
end
local ttl, taken = redis.call('PTTL', key), {}
redis.call('HDEL', key, '') -- removes nothing: it fails now, not halfway, if HDEL is denied
each(function(value, mine)
  if redis.call('HGET', key, value) ~= mine then
    redis.call('HSET', key, fields(value, mine, now + tonumber(ARGV[2]), 1))
    taken[value] = mine
  end
end)
local denied = raise(key, ttl, ARGV[2])
for value, mine in pairs(taken) do
  if not denied and stale[value] then
    drop(key, value, stale[value], true)
  elseif denied then -- undo, because values without a lease would never expire
    drop(key, value, mine, stale[value])
    if stale[value] then
      redis.call('HSET', key, value, stale[value])
    end
  end
end
if denied then
  return denied
end
-- Remove values whose leases ended more than a minute ago, because the hash lives as long as any value is in use. Of eight
-- random fields for each value more than two are ends of leases, so the dead values of a group stay few.
for _, field in ipairs(redis.pcall('HRANDFIELD', key, 8 * (#ARGV - 1))) do
  local value, holder = string.match(field, '^([^:]+):(.*):expire_time$')
  if value and tonumber(redis.call('HGET', key, field) or now) < now - 60000 then
    drop(key, value, holder, redis.call('HGET', key, value) ~= holder)
  end
end
return 1
