-- Frees a value, whichever client holds it, and wakes the waiters.
-- KEYS[1] hash of the group
-- ARGV[1] channel  ARGV[2] not used  ARGV[3] the value, with a colon
-- Reply   1 it was held, 0 it was free, -1 the hash is not a group lock
local value = split(ARGV[3])
local holder, left = holderOf(KEYS[1], value, clock())
if not holder then
  return 0
elseif not holds(holder) then
  return -1
end
drop(KEYS[1], value, holder)
notify(ARGV[1])
return left > 0 and 1 or 0
