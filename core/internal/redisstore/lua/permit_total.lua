-- Comes before the scripts of a semaphore with leases that examine all its permits, after permit.lua.
-- collect gives back the permits whose lease has expired.
local function collect(key, leases, time, verb, channel)
  local last = string.format('%.0f', time)
  local over = #redis.call('ZRANGEBYSCORE', leases, '0', last)
  if over > 0 then
    local counted = exists(key)
    local available = counted and redis.call('INCRBY', key, over) or over
    local gone = redis.pcall('ZREMRANGEBYSCORE', leases, '0', last)
    if type(gone) ~= 'number' then -- denied: undo
      if counted then
        redis.call('INCRBY', key, -over)
      end
      redis.call('ZREMRANGEBYSCORE', leases, '0', last) -- raises the error unchanged
    end
    publish(verb, channel, available)
  end
end
-- adjust sets the total of the available and the acquired permits. It returns the number of
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
