-- Frees a lock that is held in a mode, whichever clients hold it, and wakes the waiters (forceUnlock of the
-- lock of that mode). For a key of another type, Redis returns an error. A hash without a mode, or with a field
-- that is not a holder, is not such a lock and stays.
-- wanted and message depend on the kind and are defined before this script.
-- KEYS[1] lock hash
-- ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 it was held, 0 it was not held in that mode, -1 the hash is not a read-write lock
local key = KEYS[1]
local mode = look(key, 'mode')
if not mode then
  return -redis.call('EXISTS', key)
elseif mode ~= wanted then
  return 0
end
local hash = redis.call('HGETALL', key)
for i = 1, #hash, 2 do
  local field = writes(hash[i]) and string.sub(hash[i], 1, -7) or hash[i]
  if field ~= 'mode' and field ~= 'interlock_until' and not holds(field) then
    return -1
  end
end
for i = 1, #hash, 2 do
  for n = 1, not writes(hash[i]) and tonumber(hash[i + 1]) or 0 do
    if not left(key, hash[i], n) then -- the timeout key cannot be deleted
      return apart()
    end
  end
end
redis.call('DEL', key)
for i = 1, #hash, 2 do
  if not writes(hash[i]) then
    drop(key, hash[i], 1, tonumber(hash[i + 1]) or 0)
  end
end
redis.pcall(ARGV[2], ARGV[1], message)
return 1
