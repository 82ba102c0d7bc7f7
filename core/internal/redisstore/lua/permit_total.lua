-- Stands before the scripts of a semaphore with leases that look at all its permits, after permit.lua.
-- collect gives back the permits whose lease has ended.
local function collect(key, leases, time, verb, channel)
  local over = redis.call('ZREMRANGEBYSCORE', leases, '0', string.format('%.0f', time))
  if over > 0 then
    publish(verb, channel, redis.call('INCRBY', key, over))
  end
end
-- adjust makes the available and the acquired permits so many in all. It returns the number of
-- available permits then, or an error.
local function adjust(key, leases, total, verb, channel)
  local available = count(key)
  local missing = total - available - redis.call('ZCARD', leases)
  if missing ~= 0 then
    available = redis.pcall('INCRBY', key, string.format('%.0f', missing))
    if type(available) == 'number' then
      publish(verb, channel, total)
    end
  end
  return available
end
