-- Takes a lock that is free or held by readers, or by the caller's own writer. A hash without a mode is
-- another kind of lock and counts as taken. Readers leave a lock that is free, or held by readers, to a
-- waiting writer. Readers that come just after its first attempt, as after the release of another writer,
-- still get in.
-- KEYS[1] lock hash
-- ARGV[1] holder field, new for this acquisition  ARGV[2] lease in ms
-- ARGV[3] field of the write hold inside which the caller reads, empty for none
-- Reply   1 granted (also when the field is there already, because the same call was executed twice)
--         {ttl in ms, a holder's field} when another client holds it, or a writer waits
local late = 5 -- ms
local key, field, lease = KEYS[1], ARGV[1], ARGV[2]
local there, mode, rest = look(key, field)
if there then
  return 1
end
local ttl = redis.call('PTTL', key)
if mode ~= 'write' or ARGV[3] == '' or redis.call('HEXISTS', key, ARGV[3]) == 0 then
  if mode ~= 'read' and ttl ~= -2 then
    return refusal(key, rest)
  end
  local writer = redis.pcall('GET', waiting(key))
  if type(writer) == 'string' then
    local since, name = string.match(writer, '^(%d+) (.*)$')
    local now = redis.call('TIME')
    if since and (not mode or now[1] * 1000 + now[2] / 1000 - tonumber(since) >= late) then
      return {redis.call('PTTL', waiting(key)), name}
    end
  end
end
local kept = redis.pcall('SET', timeout(key, field, 1), '1', 'PX', lease)
if kept.err then
  return passing(kept)
end
local held
if mode then
  held = redis.pcall('HSET', key, field, '1')
else
  held = redis.pcall('HSET', key, 'mode', 'read', field, '1')
end
if type(held) == 'number' and ttl < tonumber(lease) then
  held = outlast(key, mode, ttl, lease)
end
if type(held) ~= 'number' then -- denied: undo, because a lock without a lease would never expire
  redis.pcall('HDEL', key, field)
  if not mode then
    redis.pcall('HDEL', key, 'mode')
  end
  drop(key, field, 1, 1)
  return held
end
return 1
