-- Comes before the scripts of the fair lock (RFairLock): its queue, and which waiter is notified.
--
-- A list contains the waiters, the next one first. A sorted set contains their deadlines. Each waiter has a
-- channel. A deadline includes the allowances of all waiters before it. So when a waiter leaves the queue,
-- its allowance is subtracted from the deadlines of all waiters behind it. A hash of this library records
-- when each waiter was seen: see fair_acquire.lua. These keys are derived from the key of the lock. Only
-- acquire and clear declare them, so that a holder can release while a slot moves; see doc.go.
local allowance = 300000 -- ms: fairLockWaitTimeout
local deafest = 8        -- number of waiters at the head to notify while no client listens for them

-- place returns the names of the keys and of the channel, from the name of one of them.
local function place(name)
  local tag = string.match(name, ':(.*)$')
  return {
    queue = 'redisson_lock_queue:' .. tag, deadlines = 'redisson_lock_timeout:' .. tag,
    channel = 'redisson_lock__channel:' .. tag, seen = tag .. ':interlock_seen',
  }
end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- looks reports whether a waiter belongs to this library, whose numbers are larger than any thread id.
-- Such a waiter attempts again without a message.
local function looks(waiter)
  return (tonumber(string.match(waiter, ':(%d+)$')) or 0) > 1099511627776
end

-- rehearse fails if one of the commands that change deadlines is denied. So a change of the queue does not stop halfway.
local function rehearse(at)
  local removes = redis.pcall('ZREM', at.deadlines, '') -- these two change nothing
  local adds = redis.pcall('ZADD', at.deadlines, 'XX', 0, '')
  local err = type(removes) == 'table' and removes.err or type(adds) == 'table' and adds.err
  if err and not string.find(err, 'WRONGTYPE', 1, true) then
    redis.call('ZREM', at.deadlines, '') -- raises the error unchanged, or the next one does
    redis.call('ZADD', at.deadlines, 'XX', 0, '')
  end
end

-- remove removes waiters from the queue. They are the keys of a table. The allowance that another
-- library added is not known. If the key of the deadlines has another type, the waiters are still removed.
local function remove(at, gone)
  rehearse(at)
  local less, names, behind = 0, {}, {}
  for _, waiter in ipairs(redis.call('LRANGE', at.queue, 0, -1)) do
    if gone[waiter] then
      redis.call('LREM', at.queue, 1, waiter)
      less = less + (looks(waiter) and allowance or 0)
    else
      behind[#behind + 1] = {waiter, less}
    end
  end
  for waiter in pairs(gone) do
    names[#names + 1] = waiter
  end
  -- While the slot moves, the hash may be on the other node.
  if #behind == 0 then
    redis.pcall('DEL', at.seen)
  else
    redis.pcall('HDEL', at.seen, unpack(names))
  end
  for _, other in ipairs(behind) do
    if other[2] > 0 then
      redis.call('ZADD', at.deadlines, 'XX', 'INCR', -other[2], other[1])
    end
  end
  redis.call('ZREM', at.deadlines, unpack(names))
end

-- tell notifies the head. If no client listens for the head, tell notifies the next waiter that has a
-- listener, so that this waiter checks the head. Some subscribers may be on other nodes of a Cluster.
local function tell(at, verb)
  for i = 0, deafest - 1 do
    local waiter = redis.call('LINDEX', at.queue, i)
    if not waiter then
      return 0
    end
    local heard = redis.call(verb, at.channel .. ':' .. waiter, '0')
    if heard > 0 then
      if not looks(waiter) then -- it comes now and may come again later under the same name
        redis.pcall('HDEL', at.seen, waiter)
      end
      return heard
    end
  end
  return 0
end

-- notify ignores a failure (an ACL without the channel, a slot that moves): waiters poll.
local function notify(verb, channel)
  local told, heard = pcall(tell, place(channel), verb)
  return told and heard or 0
end
