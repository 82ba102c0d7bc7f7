-- In front of the scripts that change a count once, however often they are executed, behind
-- semaphore.lua. An operation is "<id>:<what>:<n>". Those that were executed are in a zset beside
-- the count, the time as their score, for a while that is longer than any of them is sent again, or
-- until their clients, who have sent them only once and are answered, say "~<operation>". "!<operation>" is one that was
-- undone: it is not executed any more.
local memory = 15 * 60 -- s
local slack = 30       -- s: the old ones are cleared away, and the key is prolonged, no more often
local function operationsOf(key) return beside(key, 'interlock_ops') end
local function forgets(op) return string.sub(op, 1, 1) == '~' end
-- Forgets those of some arguments that are to be forgotten; last, as what is empty then is gone.
local function forget(ops, first, last)
  for i = first, last do
    if forgets(ARGV[i]) then
      redis.call('ZREM', ops, string.sub(ARGV[i], 2))
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
-- Remembers an operation, and tells whether it was not remembered before. One that cannot be
-- remembered for long enough is not: that is raised.
local function remember(ops, op)
  local seconds = redis.call('TIME')[1]
  local new = redis.call('ZADD', ops, seconds .. '000', op) == 1 -- in ms
  if not pcall(prolong, ops, seconds) then
    if new then
      redis.call('ZREM', ops, op)
    end
    prolong(ops, seconds) -- raises it as it is
  end
  return new
end
-- Undoes an operation that takes something, now and if it comes later. Gives it, or an error.
local function undo(key, ops, channel, verb, op, n)
  local taken = executed(ops, op)
  remember(ops, '!' .. op) -- first: while a slot moves, what has become empty cannot be filled again
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
