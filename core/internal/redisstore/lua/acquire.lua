-- Takes a free lock. The only script, with acquire_all, that creates one.
-- KEYS[1] lock hash  KEYS[2] counter of fencing tokens, where one is wanted; it is never deleted
-- ARGV[1] holder field, fresh for this acquisition  ARGV[2] lease in ms
-- Reply   1, or the token: granted (also when the field is there already, by the same call executed
--         twice; then the token is a newer one)
--         {ttl in ms, a holder's field} when somebody else holds it
local holders = redis.call('HKEYS', KEYS[1])
if #holders == 0 then
  local token = draw() -- first: a counter that is none leaves all as it was
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
    return draw()
  end
end
return {redis.call('PTTL', KEYS[1]), holders[1]}
