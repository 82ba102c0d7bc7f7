-- Takes a free lock. Only this script and acquire_all create one.
-- KEYS[1] lock hash  KEYS[2] counter of fencing tokens, if the script draws one; it is never deleted
-- ARGV[1] holder field, new for this acquisition  ARGV[2] lease in ms
-- Reply   1, or the token: granted (also when the field is there already, because the same call was
--         executed twice; the token is then a newer one)
--         {ttl in ms, a holder's field} when another client holds it
local holders = redis.call('HKEYS', KEYS[1])
if #holders == 0 then
  local token = draw() -- first: nothing has changed yet if the counter is not a number
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  local leased = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(leased) ~= 'number' then -- denied: undo, because a lock without a lease would never expire
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
