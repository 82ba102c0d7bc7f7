-- Gives all permits back, whichever clients hold them, and notifies the waiters.
-- KEYS[1] number of available permits  KEYS[2] leases
-- ARGV[1] channel, empty for none  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 some were out, 0 none, -1 the key is not a semaphore
local out = redis.call('ZRANGE', KEYS[2], 0, -1)
if #out == 0 then
  return 0
end
for _, id in ipairs(out) do
  if #id ~= 16 then
    return -1
  end
end
local counted = exists(KEYS[1])
local available = counted and redis.call('INCRBY', KEYS[1], #out) or #out
local gone = redis.pcall('DEL', KEYS[2])
if type(gone) ~= 'number' then -- denied: undo
  if counted then
    redis.call('INCRBY', KEYS[1], -#out)
  end
  return gone
end
publish(ARGV[2], ARGV[1], available)
return 1
