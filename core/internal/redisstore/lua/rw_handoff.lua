-- Replaces a holder without freeing the lock: the next writer, or a marker. A writer that also reads cannot
-- be replaced. If the TTL falls, waiters are notified, because Redisson sleeps on the TTL that it saw. A
-- failure to publish is ignored.
-- KEYS[1] lock hash  KEYS[2] counter of fencing tokens, if the script draws one
-- ARGV[1] old holder field  ARGV[2] new holder field  ARGV[3] lease of the new holder in ms
-- ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
-- Reply   {0} the old field is not the holder
--         {1, token} replaced (also when the new field is there already: the same call, executed twice)
--         {2, token} replaced and notified
local key, from, to, lease = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local count, mode, rest = look(key, from)
local writer, there = writes(from), redis.call('HEXISTS', key, to) == 1
if not count and not there then
  return {0}
end
if not there and writer and redis.call('HLEN', key) > 2 then
  return redis.error_reply('ERR the holder reads beside it writes')
end
for n = 1, not there and not writer and tonumber(count) or 0 do
  if not left(key, from, n) then -- the timeout key cannot be deleted
    return apart()
  end
end
local before, ttl = redis.call('PTTL', key), lease
if not there then
  redis.call('HDEL', key, '') -- removes nothing: it fails now, not halfway, if HDEL is denied
  ttl = writer and lease or lasting(key, from, mode, rest, before, lease)
end
local token = draw() -- first: nothing has changed yet if the counter is not a number
if there then
  return {1, token}
end
if not writer then
  local kept = redis.pcall('SET', timeout(key, to, 1), '1', 'PX', lease)
  if kept.err then
    return passing(kept)
  end
end
local held = redis.pcall('HSET', key, to, 1)
if type(held) == 'number' then
  redis.call('HDEL', key, from)
  held = outlast(key, not writer and mode, before, ttl)
end
if type(held) ~= 'number' then -- denied: undo
  redis.pcall('HSET', key, from, count)
  redis.pcall('HDEL', key, to)
  drop(key, to, 1, 1)
  return held
end
if not writer then
  drop(key, from, 1, tonumber(count))
end
if before >= 0 and before <= ttl then
  return {1, token}
end
redis.pcall(ARGV[5], ARGV[4], writer and '1' or '0')
return {2, token}
