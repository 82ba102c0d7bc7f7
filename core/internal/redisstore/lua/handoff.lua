-- Passes the lock from one holder to the next without freeing it.
-- KEYS[1] lock hash
-- ARGV[1] old holder field  ARGV[2] new holder field  ARGV[3] lease of the new holder in ms
-- Reply   1 passed (also when the new field is there already: the same call, executed twice)
--         0 the old field is not the holder
local counts = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2])
if counts[2] then
  return 1
end
if not counts[1] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HDEL', KEYS[1], ARGV[1])
return 1
