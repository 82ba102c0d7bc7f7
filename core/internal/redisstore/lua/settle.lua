-- Executes operations, each once, and undoes operations that take permits. once.lua and settle_….lua, the
-- changes of a kind, come before it. Its reply for an operation is final. A key that cannot be read does not
-- stop the others.
-- KEYS    counts (a single one in a Cluster)
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel, number of operations, operations; for a
--         semaphore with leases also permits without a holder, which are given back
-- Reply   for every key the settled operations and the permits that were out; or the message of an error. An
--         operation is there as "!<operation>" if it found the count set already, or too near the largest
--         one, or the permit not held. For a key with 16 operations or more, the reply contains all recorded ones,
--         because there may be more than the arguments name.

-- The changes that found nothing to do if they return 0.
local asks = {set = true, begin = true, back = true}
-- failure returns the message of an error that was returned or raised, without its position, nil otherwise.
local function failure(ran, reply)
  if type(reply) == 'table' then
    return reply.err
  end
  return not ran and string.gsub(tostring(reply), '^%S*:%d+: ', '') or nil
end
-- execute and the next functions return the part of the reply for an operation: nil for none, a table
-- for an error. A change returns false if the count would leave its range. An operation that changed
-- nothing is not remembered.
local function execute(key, ops, channel, op, what, n)
  redis.call('ZREM', ops, '') -- removes nothing: it fails now, not halfway, if ZREM is denied
  if not remember(ops, op) then
    return op
  end
  local ran, done = pcall(changes[what], key, n, channel, op)
  local err = failure(ran, done)
  if err or not done or done == 0 and asks[what] then -- another execution would have the same result
    redis.call('ZREM', ops, op)
    return err and {err = err} or '!' .. op
  end
  return op
end
local function settle(key, ops, channel, op)
  local what, n = string.match(op, ':(%a+):(-?%d+)$')
  if changes[what] then
    return execute(key, ops, channel, op, what, n)
  elseif what then
    return undo(key, ops, channel, verb, op, n)
  elseif clear then
    return clear(key, channel, op)
  end
  return op -- the argument was a question
end
local function known(key, ops)
  local all = redis.call('ZRANGE', ops, 0, -1)
  for _, id in ipairs(leasesOf and redis.call('ZRANGE', leasesOf(key), 0, -1) or {}) do
    all[#all + 1] = hex(id)
  end
  return all
end
-- all settles the operations in some arguments for a key. It returns the part of the reply, or an error.
local function all(key, channel, first, last)
  local ops = operationsOf(key)
  local moves = apart(key, ops, leasesOf and leasesOf(key) or key)
  if moves then
    return moves
  end
  local said = last - first >= 15 and known(key, ops) or {}
  for j = first, last do
    local reply = not said.err and not forgets(ARGV[j]) and settle(key, ops, channel, ARGV[j])
    if type(reply) == 'table' then
      said = reply
    elseif reply then
      said[#said + 1] = reply
    end
  end
  forget(ops, first, last)
  return said
end
local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local last = at + 1 + tonumber(ARGV[at + 1])
  local ran, said = pcall(all, key, ARGV[at], at + 2, last)
  found[i], at = failure(ran, said) or said, last + 1
end
return found
