-- Comes before the scripts that change a count once, however often they are executed, after semaphore.lua.
-- An operation is "<id>:<what>:<n>". A sorted set beside the count contains the executed operations with their
-- time as score. It keeps each operation for longer than any client would send it again, or until its client
-- sends "~<operation>" because the operation was sent only once and was answered. "!<operation>" was undone
-- and will not be executed.
local memory = 15 * 60 -- s
local slack = 30       -- s: the shortest time between two removals of old operations and two extensions of the key
local function operationsOf(key) return beside(key, 'interlock_ops') end
local function forgets(op) return string.sub(op, 1, 1) == '~' end
-- forget removes the operations that arguments mark with "~". It comes last, because an empty key
-- disappears. Operations that it cannot remove expire.
local function forget(ops, first, last)
  for i = first, last do
    if forgets(ARGV[i]) then
      redis.pcall('ZREM', ops, string.sub(ARGV[i], 2))
    end
  end
end
local function executed(ops, op) return redis.call('ZSCORE', ops, op) end
local function prolong(ops, seconds)
  if redis.call('PTTL', ops) < (memory - slack) * 1000 then
    redis.call('ZREMRANGEBYSCORE', ops, 0, seconds - memory .. '000')
    redis.call('PEXPIRE', ops, memory * 1000)
  end
end
-- remember records an operation and reports whether it was new. If an operation cannot be
-- recorded for long enough, it is not recorded, and the error is raised.
local function remember(ops, op)
  local seconds = redis.call('TIME')[1]
  local new = redis.call('ZADD', ops, seconds .. '000', op) == 1 -- the score in ms
  if not pcall(prolong, ops, seconds) then
    if new then
      redis.call('ZREM', ops, op)
    end
    prolong(ops, seconds) -- raises the error unchanged
  end
  return new
end
-- undo undoes an operation that takes permits, now and if it lands later. It returns the operation,
-- or an error.
local function undo(key, ops, channel, verb, op, n)
  local taken = executed(ops, op)
  redis.call('ZREM', ops, '') -- removes nothing: it fails now, not halfway, if ZREM is denied
  remember(ops, '!' .. op) -- first: while a slot moves, an empty key cannot be filled again
  if taken then
    local available = redis.pcall('INCRBY', key, n)
    if type(available) ~= 'number' then
      redis.call('ZREM', ops, '!' .. op)
      return available
    end
    publish(verb, channel, available)
  end
  redis.call('ZREM', ops, op)
  return op
end
