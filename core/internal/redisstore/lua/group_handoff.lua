-- Replaces the holder of a value without freeing it.
-- KEYS[1] hash of the group
-- ARGV[1] value and old holder  ARGV[2] value and new holder  ARGV[3] lease of the new holder in ms  ARGV[4] channel
-- ARGV[5] not used
-- Reply   {0} the old holder does not have the value
--         {1} passed (also when the new holder has it already: the same call, executed twice)  {2} passed and notified
local value, old = split(ARGV[1])
local _, new = split(ARGV[2])
local now, lease = clock(), tonumber(ARGV[3])
local holder, left = holderOf(KEYS[1], value, now)
if holder == new then
  return {1}
elseif holder ~= old then
  return {0}
end
redis.call('HDEL', KEYS[1], '') -- removes nothing: it fails now, not halfway, if HDEL is denied
local denied = write(KEYS[1], lease, fields(value, new, now + lease, 1))
if denied then
  return denied
end
drop(KEYS[1], value, old, true)
if left <= lease then
  return {1}
end
notify(ARGV[4])
return {2}
