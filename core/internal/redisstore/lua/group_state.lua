-- Reads a value of a group at one instant, on the master.
-- KEYS[1] hash of the group
-- ARGV[1] the value, with a colon
-- Reply   {ttl in ms, holder, count}; {-2} if the value is free
local value = split(ARGV[1])
local holder, left = holderOf(KEYS[1], value, clock())
if not holder or left <= 0 then
  return {-2}
end
return {left, holder, redis.call('HGET', KEYS[1], value .. ':' .. holder .. ':lock_count') or '0'}
