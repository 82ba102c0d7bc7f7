-- Comes before the scripts of a semaphore with leases (RPermitExpirableSemaphore), after semaphore.lua. An
-- acquired permit is a member of 16 bytes in a sorted set. Its score is the end of its lease in ms by the
-- clock of the server. Outside Redis it is 32 hex digits. Arguments contain the bytes, because the conversion
-- would take Lua as long as the rest. A permit whose lease has expired has no holder. It becomes available
-- when the next script takes a permit or reads the counts. Scripts about an existing lease declare the sorted set only,
-- so that they work on the node that has it while the slot moves.
local never = 922337203685477
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function hex(id)
  return (string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
-- lasts returns the end of the lease of a permit, nil if the lease has expired.
local function lasts(leases, id, time)
  local score = tonumber(redis.call('ZSCORE', leases, id) or 0)
  return score > time and score or nil
end
local function deadline(time, lease)
  return string.format('%.0f', math.min(time + lease, never))
end
-- A count may expire while permits are out that were renewed. It then stays absent until an acquisition sets it, because a
-- count that is made here would not expire.
local function exists(key) return redis.call('EXISTS', key) == 1 end
-- giveBack gives back one permit that is out. It returns nil if the permit is not out; otherwise the
-- number of available permits, or an error, and the end of its lease. Without a count, that number is 1.
local function giveBack(key, leases, id)
  local score = redis.call('ZSCORE', leases, id)
  if not score then
    return nil
  end
  local counted = exists(key)
  local available = not counted and 1 or redis.pcall('INCRBY', key, 1)
  if type(available) ~= 'number' then
    return available
  end
  local gone = redis.pcall('ZREM', leases, id)
  if type(gone) ~= 'number' then -- denied: undo
    if counted then
      redis.call('INCRBY', key, -1)
    end
    return gone
  end
  return available, tonumber(score)
end
