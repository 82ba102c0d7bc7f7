-- Raises the TTL of a lock that the field still holds. With a lease of 0 it only reports whether it does.
-- KEYS[1] lock hash
-- ARGV[1] lease in ms  ARGV[2] holder field
-- Reply   {1} held, {0} not the holder, {the message of an error}
local mine, lease = redis.pcall('HEXISTS', KEYS[1], ARGV[2]), tonumber(ARGV[1])
if type(mine) ~= 'number' then
  return {mine.err}
end
if lease > 0 and mine == 1 and redis.call('PTTL', KEYS[1]) < lease then
  local raised = redis.pcall('PEXPIRE', KEYS[1], lease)
  if type(raised) ~= 'number' then
    return {raised.err}
  end
end
return {mine}
