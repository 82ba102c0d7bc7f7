-- Takes a free lock as acquire.lua does, and draws a fencing token (RFencedLock).
-- KEYS[1] lock hash  KEYS[2] counter of tokens, which is never deleted
-- ARGV[1] holder field, fresh for this acquisition  ARGV[2] lease in ms
-- Reply   the token (when the field is there already, by the same call executed twice, a newer one)
--         {ttl in ms, a holder's field} when somebody else holds it
local holders = redis.call('HKEYS', KEYS[1])
if #holders == 0 then
  local token = redis.call('INCR', KEYS[2])
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  local leased = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(leased) ~= 'number' then -- denied: a lock without a lease would stay for ever
    redis.call('HDEL', KEYS[1], ARGV[1])
    return leased
  end
  return token
end
for _, holder in ipairs(holders) do
  if holder == ARGV[1] then
    return redis.call('INCR', KEYS[2])
  end
end
return {redis.call('PTTL', KEYS[1]), holders[1]}
