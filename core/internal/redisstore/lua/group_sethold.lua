-- Sets the hold count of a holder: re-entry and partial release. It never creates a holder and never shortens its lease.
-- KEYS[1] hash of the group
-- ARGV[1] value and holder  ARGV[2] hold count  ARGV[3] lease in ms to which the lease is raised, 0 leaves it
-- Reply   1 done, 0 not the holder
local value, mine = split(ARGV[1])
local now, lease = clock(), tonumber(ARGV[3])
local holder, left = holderOf(KEYS[1], value, now)
if holder ~= mine then
  return 0
end
lease = math.max(left, lease)
return write(KEYS[1], lease, fields(value, mine, now + lease, ARGV[2])) or 1
