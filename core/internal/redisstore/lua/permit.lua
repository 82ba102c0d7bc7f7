-- In front of the scripts of a semaphore with leases (RPermitExpirableSemaphore), behind
-- semaphore.lua. A permit that is out is 16 bytes in a zset, its score the end of its lease, in ms
-- by the server's clock; outside it is 32 hex digits. An argument that is a permit has the bytes
-- already, for that takes Lua as long as the rest. One that is over is not held by anybody, and is
-- given back by whoever takes the next one, or looks at the counts. What has to do with a lease
-- that is there names the zset only, so that it works wherever that is while the slot moves.
local never = 922337203685477
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function hex(id)
  return (string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
-- The end of the lease of a permit, if it is not over; else nil.
local function lasts(leases, id, time)
  local score = tonumber(redis.call('ZSCORE', leases, id) or 0)
  return score > time and score or nil
end
local function deadline(time, lease)
  return string.format('%.0f', math.min(time + lease, never))
end
-- Gives one permit back that is out. Gives nil if it is not, else how many are available, or an
-- error, and when its lease ends.
local function giveBack(key, leases, id)
  local score = redis.call('ZSCORE', leases, id)
  if not score then
    return nil
  end
  redis.call('ZREM', leases, id)
  local available = redis.pcall('INCR', key)
  if type(available) ~= 'number' then -- denied: all is put back
    redis.call('ZADD', leases, score, id)
  end
  return available, tonumber(score)
end
