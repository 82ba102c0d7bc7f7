-- In front of the scripts of the fair lock (RFairLock): its queue, and who of it is notified.
--
-- Waiters stand in a list, the next one first; a zset has their deadlines. Each has a channel of
-- its own. A deadline contains the allowances of all before it: who leaves the queue takes his own
-- from all behind him. A hash of this library has when each waiter was seen: see fair_acquire.lua.
-- These keys follow from the lock's and are not declared, except by the acquire: while a slot
-- moves, a holder can release.
local allowance = 300000 -- ms: fairLockWaitTimeout
local deafest = 8        -- so many at the head are notified, if nobody listens for them

-- The names, by one of them.
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

-- Those of this library have numbers that no thread has. They come to look in any case.
local function looks(waiter)
  return (tonumber(string.match(waiter, ':(%d+)$')) or 0) > 1099511627776
end

-- Takes waiters out of the queue, given as the keys of a table. What one of another library added is
-- not known. Deadlines of another type keep nobody in it.
local function remove(at, gone)
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

-- Notifies the head. Where nobody listens for it, the next one that somebody listens for is notified,
-- to look after it. Some may be heard on other nodes of a Cluster.
local function tell(at, verb)
  for i = 0, deafest - 1 do
    local waiter = redis.call('LINDEX', at.queue, i)
    if not waiter then
      return 0
    end
    local heard = redis.call(verb, at.channel .. ':' .. waiter, '0')
    if heard > 0 then
      if not looks(waiter) then -- it comes, and then again under the same name
        redis.pcall('HDEL', at.seen, waiter)
      end
      return heard
    end
  end
  return 0
end

-- What fails (an ACL without the channel, a slot that moves) fails nothing: waiters poll.
local function notify(verb, channel)
  local told, heard = pcall(tell, place(channel), verb)
  return told and heard or 0
end
