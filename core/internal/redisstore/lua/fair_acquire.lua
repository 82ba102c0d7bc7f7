-- Takes a fair lock if it is free and no waiter is before the caller. Otherwise it takes a place in the queue.
-- KEYS[1] lock hash  KEYS[2] queue  KEYS[3] deadlines  KEYS[4] when each waiter was seen
-- KEYS[5] counter of fencing tokens, if the script draws one
-- ARGV[1] field; a waiter keeps it in all attempts that are answered
-- ARGV[2] lease in ms  ARGV[3] 1: the caller waits, 0: it takes no place
-- ARGV[4] PUBLISH or SPUBLISH  ARGV[5] the PUBSUB subcommand that counts subscribers, empty if none counts
--         all of them
-- ARGV[6…] fields of attempts of the same waiter without an answer, whose place it takes
-- Reply   1, or the token: granted (also when the field, or one of those, has the lock already)
--         {ttl in ms, a holder's or the head's field, place in the queue, from 1}: look again after that
--
-- A waiter that has not attempted (looked) for long is missing. It is dropped if it leaves the lock free.
-- KEYS[4] contains a time in ms for each waiter: the time of its last look. A waiter of another library does
-- not write it. For such a waiter KEYS[4] contains the time at which it was found missing and its deadline at
-- that time, which identifies the wait.
--
-- If no waiter looked for a while, the server may have stalled, so that none could. Then all times start
-- again, but only once: from then on each contains the word "again". Otherwise callers that come seldom
-- would never drop a waiter.
local at = place(KEYS[2])
local field = ARGV[1]
local quiet = 600      -- ms without a look
local patience = 1100  -- ms: for a waiter with a subscriber, which looks every 500 ms: 500 ms plus quiet
local absent = 750     -- ms: for a waiter without a subscriber, which looks as often
local far = 300        -- a waiter with this many before it looks only every 1250 ms,
local later = 750      -- which is this many ms later than the others
local deaf = 30000     -- ms: for a waiter of another library with a subscriber, which is notified
local apart = 20       -- ms from waiter to waiter when they check a missing one
local step = 100       -- number of waiters read at once
local farthest = 1000  -- number of waiters at the head to check if none has a subscriber
local forgets = 300000 -- ms until the times expire without a look
local head = redis.call('LINDEX', at.queue, 0)
local now -- set if there are waiters

local function grant(instead)
  local token = draw() -- first: nothing has changed yet if the counter is not a number
  if instead then
    redis.call('HDEL', KEYS[1], '') -- removes nothing: it fails now, not halfway, if HDEL is denied
  end
  redis.call('HSET', KEYS[1], field, 1)
  local leased = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(leased) ~= 'number' then -- denied: undo, because a lock without a lease would never expire
    redis.call('HDEL', KEYS[1], field)
    return leased
  end
  if head then
    local gone = {[field] = true}
    if not pcall(remove, at, gone) then -- denied: undo
      if type(redis.pcall('HDEL', KEYS[1], field)) ~= 'number' then
        redis.call('DEL', KEYS[1]) -- not with another holder, because HDEL was not denied then
      end
      remove(at, gone) -- raises the error unchanged
    end
  end
  if instead then
    redis.call('HDEL', KEYS[1], instead)
  end
  return token
end

-- keep moves the deadline of the caller to at least this time. An abandoned queue expires a day later.
local function keep(deadline, enters)
  local before = tonumber(redis.call('ZSCORE', at.deadlines, field) or 0)
  if not enters and before >= deadline then
    return
  end
  local expires = string.format('%.0f', deadline + 86400000)
  redis.call('ZADD', at.deadlines, string.format('%.0f', math.max(before, deadline)), field)
  local function stay()
    redis.call('PEXPIREAT', at.deadlines, expires)
    if enters then
      redis.call('RPUSH', at.queue, field)
    end
    redis.call('PEXPIREAT', at.queue, expires)
  end
  if not pcall(stay) then -- denied: undo
    if enters then
      redis.call('ZREM', at.deadlines, field)
    else
      redis.call('ZADD', at.deadlines, before, field)
    end
    stay() -- raises the error unchanged
  end
end

-- inherit takes the place of an attempt without an answer.
local function inherit(ghost)
  if redis.call('ZSCORE', at.deadlines, field) then
    remove(at, {[ghost] = true})
    return
  end
  redis.call('LREM', at.queue, 1, '') -- removes nothing: it fails now, not halfway, if LREM is denied
  rehearse(at)
  if redis.call('LINSERT', at.queue, 'BEFORE', ghost, field) > 0 then
    redis.call('LREM', at.queue, 1, ghost)
    redis.pcall('HDEL', at.seen, ghost)
    redis.call('ZADD', at.deadlines, redis.call('ZSCORE', at.deadlines, ghost) or 0, field)
    redis.call('ZREM', at.deadlines, ghost)
  end
end

local function enqueue()
  local last = redis.call('LINDEX', at.queue, -1)
  local before = last and redis.call('ZSCORE', at.deadlines, last)
  if not before then
    before = now + math.max(redis.call('PTTL', KEYS[1]), 0)
  end
  keep(before + allowance, true)
end

-- dropLate applies the rule of Redisson: it drops a head whose deadline has passed. It returns the new head.
local function dropLate()
  while true do
    local head = redis.call('LINDEX', at.queue, 0)
    if not head then
      redis.pcall('DEL', at.seen)
      return nil
    end
    local deadline = redis.call('ZSCORE', at.deadlines, head)
    if not deadline or tonumber(deadline) > now then
      return head
    end
    redis.call('ZREM', at.deadlines, '') -- removes nothing: it fails now, not halfway, if ZREM is denied
    redis.call('LPOP', at.queue)
    redis.call('ZREM', at.deadlines, head)
    redis.pcall('HDEL', at.seen, head)
  end
end

-- deadlineOf returns the deadline of a waiter of another library, which distinguishes its waits.
local function deadlineOf(waiter)
  return not looks(waiter) and redis.call('ZSCORE', at.deadlines, waiter) or ''
end

-- note records that a waiter was seen, or found missing, now. more is set for a waiter that will look
-- later than others.
local function note(waiter, more)
  redis.call('HSET', at.seen, waiter, string.format('%.0f %s', now + (more or 0), deadlineOf(waiter)))
end

-- isOf reports whether a recorded deadline belongs to the present wait: it is the same, or waiters left
-- the queue since.
local function isOf(waiter, deadline)
  local today = deadlineOf(waiter)
  local less = tonumber(deadline ~= '' and today ~= '' and deadline - today)
  return deadline == today or less and less > 0 and less % allowance == 0
end

-- wake restarts all times if no waiter looked for a while.
local function wake()
  local idle = forgets - redis.call('PTTL', at.seen)
  if idle <= quiet or idle > forgets then -- if idle > forgets, there are no times
    return
  end
  local seen = redis.call('HGETALL', at.seen)
  for i = 1, #seen, 2 do
    local rest = string.match(seen[i + 1], '^%d+( %S*)$')
    if rest then
      redis.call('HSET', at.seen, seen[i], string.format('%.0f%s again', now, rest))
    end
  end
end

-- sinceOf returns when a waiter was seen or found missing, from its note. It returns nil if the note
-- does not count: its time is too late (the clock went back), or it belongs to another wait. The
-- deadline of a head does not change.
local function sinceOf(waiter, written, hears)
  local time, deadline = string.match(written or '', '^(%d+) (%S*)')
  local same = time and (isOf(waiter, deadline) and not hears or deadline == deadlineOf(waiter))
  return same and tonumber(time) <= now + later and tonumber(time) or nil
end

-- listeners returns a table with true for each waiter for which a client listens. If no command counts
-- all subscribers, every waiter counts as having a listener.
local function listeners(waiters)
  local channels, hear = {}, {}
  for i, waiter in ipairs(waiters) do
    channels[i] = at.channel .. ':' .. waiter
  end
  local reply = ARGV[5] == '' and {} or redis.pcall('PUBSUB', ARGV[5], unpack(channels))
  for i, waiter in ipairs(waiters) do
    hear[waiter] = tonumber(reply[2 * i]) ~= 0 or nil
  end
  return hear
end

-- allowed returns how long a waiter may be missing.
local function allowed(waiter, hears)
  return not hears and absent or looks(waiter) and patience or deaf
end

-- remind notifies a head of another library again if it does not come, because its message may have
-- been lost.
local function remind(waiter, since, told)
  if not looks(waiter) and now - since >= 1000 and math.abs(now - tonumber(told or 0)) >= 1000 then
    redis.call('HSET', at.seen, 'told', string.format('%.0f', now))
    redis.pcall(ARGV[4], at.channel .. ':' .. waiter, '0')
  end
end

-- written returns the recorded times by waiter. It deletes the times of waiters of another library that
-- left, because no other script does.
local function written()
  local found, known = redis.call('HGETALL', at.seen), {}
  for i = 1, #found, 2 do
    local waiter = found[i]
    if waiter == 'told' or looks(waiter) or redis.call('LPOS', at.queue, waiter) then
      known[waiter] = found[i + 1]
    else
      redis.pcall('HDEL', at.seen, waiter)
    end
  end
  return known
end

-- dropMissing checks the waiters before the caller, up to the first one with a subscriber and some more.
-- It records missing waiters of another library. It drops waiters that have been missing for long while
-- the lock is free. A waiter of another library with a subscriber counts as missing from the time at which
-- its turn came. dropMissing returns the head and the time in ms until the head would be dropped.
local function dropMissing(head, free)
  if not free and looks(head) then
    return head, 0
  end
  local known, gone, from, first, left, last = written(), {}, 0, nil, 1, not free
  repeat
    local waiters = redis.call('LRANGE', at.queue, from, free and from + step - 1 or 0)
    local hear = listeners(waiters)
    from = from + step
    last = last or next(hear) or #waiters < step or from >= farthest
    for _, waiter in ipairs(waiters) do
      local hears = hear[waiter]
      if waiter == field then
        last = true
        break
      elseif hears and not looks(waiter) and (first or not free) then
        redis.pcall('HDEL', at.seen, waiter)
      else
        local since = sinceOf(waiter, known[waiter], hears)
        if not since then
          since = now
          note(waiter)
        end
        local ends = since + allowed(waiter, hears)
        if not first and (ends > now or not free) then
          first, left = waiter, ends - now
          if free then
            remind(waiter, since, known.told)
          end
        elseif not first then
          gone[waiter] = true
        end
      end
    end
  until last
  if next(gone) then
    remove(at, gone)
  end
  first = first or redis.call('LINDEX', at.queue, 0)
  if first and first ~= field and next(gone) then
    notify(ARGV[4], at.channel)
  end
  return first, left
end

local holders = redis.call('HKEYS', KEYS[1])
for i, holder in ipairs(holders) do
  if holder == field then
    return draw()
  end
  for j = 6, #ARGV do
    if holder == ARGV[j] then
      return grant(holder)
    end
  end
end
local free, waits = #holders == 0, ARGV[3] == '1'
if free and not head then
  return grant()
elseif not free and not waits then
  return {redis.call('PTTL', KEYS[1]), holders[1]}
end
now = clock()
for i = #ARGV, 6, -1 do -- the last attempt that was executed has the earliest place
  inherit(ARGV[i])
end
wake()
local ahead, left = redis.call('LPOS', at.queue, field), 0
if ahead then
  keep(now + allowance * (ahead + 1))
end
head = dropLate()
if head and head ~= field then
  local ran, first, rest = pcall(dropMissing, head, free)
  if not ran then
    redis.pcall('PEXPIRE', at.seen, forgets)
    dropMissing(head, free) -- raises the error unchanged
  end
  head, left = first, rest
end
if free and (not head or head == field) then
  return grant()
end
local enters = waits and not ahead
ahead = redis.call('LPOS', at.queue, field) or redis.call('LLEN', at.queue)
if waits then
  note(field, ahead >= far and later)
end
if type(redis.pcall('PEXPIRE', at.seen, forgets)) ~= 'number' then -- denied: undo
  redis.call('HDEL', at.seen, field)
  redis.call('PEXPIRE', at.seen, forgets) -- raises the error unchanged
end
if enters then
  enqueue()
end
if free then
  return {left + apart * (ahead - 1), head, ahead + 1}
end
return {redis.call('PTTL', KEYS[1]), holders[1], ahead + 1}
