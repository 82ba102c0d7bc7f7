-- Replaces the holder without freeing the lock. If the TTL falls, waiters are notified, because Redisson
-- sleeps on the TTL that it saw. A failure to publish is ignored.
-- KEYS[1] lock hash  KEYS[2] counter of fencing tokens, if the script draws one
-- ARGV[1] old holder field  ARGV[2] new holder field  ARGV[3] lease of the new holder in ms
-- ARGV[4] channel, empty for none  ARGV[5] PUBLISH or SPUBLISH
-- Reply   {0} the old field is not the holder
--         {1, token} passed (also when the new field is there already: the same call, executed twice)
--         {2, token} passed and notified
local before = redis.call('PTTL', KEYS[1])
if before == -2 then
  return {0}
end
redis.call('HDEL', KEYS[1], '') -- removes nothing: it fails now, not halfway, if HDEL is denied
local token = draw() -- first: nothing has changed yet if the counter is not a number
if redis.call('HSETNX', KEYS[1], ARGV[2], 1) == 0 then
  return {1, token}
end
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  redis.call('HDEL', KEYS[1], ARGV[2])
  return {0}
end
local leased = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
if type(leased) ~= 'number' then -- denied: undo
  redis.call('HSETNX', KEYS[1], ARGV[1], 1)
  redis.call('HDEL', KEYS[1], ARGV[2])
  return leased
end
if ARGV[4] == '' or before >= 0 and before <= tonumber(ARGV[3]) then
  return {1, token}
end
notify(ARGV[5], ARGV[4])
return {2, token}
