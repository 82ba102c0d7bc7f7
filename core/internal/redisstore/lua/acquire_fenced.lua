-- Takes a free lock as acquire.lua does, and draws a fencing token (RFencedLock).
-- KEYS[1] lock hash  KEYS[2] counter of tokens, which is never deleted
-- ARGV[1] holder field, fresh for this acquisition  ARGV[2] lease in ms
-- Reply   the token (when the field is there already, by the same call executed twice, a newer one)
--         {ttl in ms, a holder's field} when somebody else holds it
if redis.call('EXISTS', KEYS[1]) == 0 then
  local token = redis.call('INCR', KEYS[2])
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return token
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('INCR', KEYS[2])
end
return {redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1]}
