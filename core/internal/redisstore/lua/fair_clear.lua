-- Cleans up after waiters and unanswered commands: frees each fair lock that one of its fields holds,
-- removes the fields from its queue, and notifies the waiter that is next then. A key that cannot be
-- read stops neither the other keys of its lock nor other locks.
-- It declares the keys of the queue, so that Redis refuses it while the slot moves: keys that have not moved yet would look
-- empty, and the places of the waiters would stay for a day.
-- KEYS    for every lock (a single one in a Cluster): lock hash, queue, deadlines, when each waiter was seen
-- ARGV[1] PUBLISH or SPUBLISH, then for every lock: channel, number of fields, fields
-- Reply   for every lock the fields that were there before, holders and waiters, or the message of an error
local found, arg = {}, 2
for i = 1, #KEYS, 4 do
  local key = KEYS[i]
  local last = arg + 1 + tonumber(ARGV[arg + 1])
  local at, gone = place(ARGV[arg]), {}
  for j = arg + 2, last do
    gone[ARGV[j]] = true
  end
  local holders = redis.pcall('HKEYS', key)
  local waiters = redis.pcall('LRANGE', at.queue, 0, -1)
  local holder, free = holders[1], not holders.err and not holders[1]
  if gone[holder] then
    redis.call('DEL', key)
  end
  local removed, err = pcall(remove, at, gone)
  if gone[holder] or free and gone[waiters[1]] then
    notify(ARGV[1], ARGV[arg])
  end
  found[#found + 1] = holders.err or not removed and (type(err) == 'table' and err.err or err) or holders
  if found[#found] == holders then
    for _, waiter in ipairs(waiters) do
      holders[#holders + 1] = waiter
    end
  end
  arg = last + 1
end
return found
