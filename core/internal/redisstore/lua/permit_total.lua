-- In front of those scripts of a semaphore with leases that look at all its permits, behind permit.lua.
-- Gives the permits back whose leases are over.
local function collect(key, leases, time, verb, channel)
  local over = redis.call('ZREMRANGEBYSCORE', leases, '0', string.format('%.0f', time))
  if over > 0 then
    publish(verb, channel, redis.call('INCRBY', key, over))
  end
end
-- Makes available and acquired ones so many in all. Gives how many are available then, or an error.
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
