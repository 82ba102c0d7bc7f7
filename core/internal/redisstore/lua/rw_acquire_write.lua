-- Takes a lock that is free, or whose readers are all dead. A writer that waits for readers leaves a mark,
-- so that no more readers come. The mark is deleted when a writer gets the lock.
-- KEYS[1] lock hash  KEYS[2] counter of fencing tokens, if the script draws one; it is never deleted
-- ARGV[1] holder field, new for this acquisition  ARGV[2] lease in ms
-- ARGV[3] how much longer the caller waits in ms, 0 if it does not
-- Reply   1, or the token: granted (also when the field is there already, because the same call was
--         executed twice; the token is then a newer one)
--         {ttl in ms, a holder's field} when another client holds it
local longestMark = 900 -- ms: the next attempt comes sooner; see LongestMark
local key, field, wait = KEYS[1], ARGV[1], tonumber(ARGV[3])
local there, mode, rest = look(key, field)
if there then
  return draw()
end
local dead = mode == 'read' and longest(key, 1) == 0
if dead or redis.call('EXISTS', key) == 0 then
  local token = draw() -- first: nothing has changed yet if the counter is not a number
  if dead then
    redis.call('DEL', key)
  end
  redis.call('HSET', key, 'mode', 'write', field, 1)
  local leased = redis.pcall('PEXPIRE', key, ARGV[2])
  if type(leased) ~= 'number' then -- denied: undo, because a lock without a lease would never expire
    redis.call('HDEL', key, 'mode', field)
    return leased
  end
  redis.pcall('DEL', waiting(key))
  return token
end
if mode == 'read' and wait > 0 then
  local lasts, mark = math.min(wait, longestMark), redis.pcall('PTTL', waiting(key))
  if type(mark) == 'number' and mark > 0 then
    if mark < lasts then
      redis.pcall('PEXPIRE', waiting(key), lasts)
    end
  elseif known(key, waiting(key)) then
    local now = redis.call('TIME')
    redis.pcall('SET', waiting(key), string.format('%.0f %s', now[1] * 1000 + math.floor(now[2] / 1000), field), 'PX', lasts)
  end
end
return refusal(key, rest)
