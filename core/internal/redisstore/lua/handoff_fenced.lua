-- Passes the lock on as handoff.lua does, and draws a fencing token for the new holder.
-- KEYS[1] lock hash  KEYS[2] counter of tokens
-- ARGV[1] old holder field  ARGV[2] new holder field  ARGV[3] lease of the new holder in ms
-- ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
-- Reply   {0} the old field is not the holder
--         {1, token} passed (also when the new field is there already: the same call, executed twice)
--         {2, token} passed and notified
local before = redis.call('PTTL', KEYS[1])
if before == -2 then
  return {0}
end
local token = redis.call('INCR', KEYS[2]) -- first: a counter that is none leaves all as it was
if redis.call('HSETNX', KEYS[1], ARGV[2], 1) == 0 then
  return {1, token}
end
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  redis.call('HDEL', KEYS[1], ARGV[2])
  return {0}
end
local leased = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
if type(leased) ~= 'number' then -- denied: all is put back
  redis.call('HSETNX', KEYS[1], ARGV[1], 1)
  redis.call('HDEL', KEYS[1], ARGV[2])
  return leased
end
if before >= 0 and before <= tonumber(ARGV[3]) then
  return {1, token}
end
redis.pcall(ARGV[5], ARGV[4], '0')
return {2, token}
