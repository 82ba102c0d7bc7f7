-- In front of the scripts of the read-write lock (RReadWriteLock): a hash with the field "mode",
-- which is "read" or "write", a field with a count for every reader, and one for the writer, which
-- ends in ":write". A reader has a timeout key for every one of its counts, with the lease of that
-- hold; without any it is dead, and has the lock no more. One of Redisson may live: 3.44 to 4.3 renew
-- those keys for the first only of the locks that a client reads, and all the locks. So it lasts as long
-- as the lock then, if that is not too long for it to be renewed.
-- What is about the leases of other readers is in rw_others.lua.
-- A writer's lease is that of the lock. While readers inside of it make that last longer, the field
-- "interlock_until" has when the writer's own is over, behind an "@": what is no number Redisson takes for
-- no holder. Whoever looks after that takes the writer out, and the lock is one of readers.
-- The scripts declare the lock only: while its slot moves to another node, a script over several
-- keys fails. So does a command to a key that is on the other node by then: those are by pcall.
local function beside(key, name)
  if string.find(key, '{', 1, true) then
    return key .. ':' .. name
  end
  return '{' .. key .. '}:' .. name
end

local function timeout(key, field, n)
  return beside(key, field .. ':rwlock_timeout:' .. n)
end

-- waiting names the mark of a writer that waits for readers; no other library knows it.
local function waiting(key)
  return beside(key, 'interlock_writer')
end

local function writes(field)
  return string.sub(field, -6) == ':write'
end

-- clock is the time of the server in ms.
local function clock()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end

-- look gives the value of a field, the mode, and what a writer has left in ms that has readers inside who
-- make the lock last longer, nil where there is none. One that has nothing left is taken out.
local function look(key, field)
  local found = redis.call('HMGET', key, field, 'mode', 'interlock_until')
  if not found[3] then
    return found[1], found[2], nil
  end
  local rest = tonumber(string.sub(found[3], 2)) - clock()
  if rest > 0 then
    return found[1], found[2], rest
  end
  for _, holder in ipairs(redis.call('HKEYS', key)) do
    if writes(holder) then
      redis.call('HDEL', key, holder)
    end
  end
  redis.call('HDEL', key, 'interlock_until')
  redis.call('HSET', key, 'mode', 'read')
  return look(key, field)
end

-- apart is the answer where a timeout key of a reader is on another node than the lock, or may be.
local function apart()
  return redis.error_reply('TRYAGAIN the slot of the lock moves')
end

-- drop deletes the timeout keys of a reader from the n-th on.
local function drop(key, field, n, count)
  for i = n, count do
    redis.pcall('DEL', timeout(key, field, i))
  end
end

-- refusal says who is in the way: the writer, with what it has left, or any reader.
local function refusal(key, rest)
  local holder
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if field ~= 'mode' and field ~= 'interlock_until' and (not holder or writes(field)) then
      holder = field
    end
  end
  return {rest or redis.call('PTTL', key), holder}
end

-- passing makes an error that passes by itself of one that the move of a slot causes.
local function passing(reply)
  if string.find(reply.err, 'non local key', 1, true) then
    return apart()
  end
  return reply
end

