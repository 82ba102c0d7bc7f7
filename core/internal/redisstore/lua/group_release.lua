-- Frees a value if the holder has it, whatever its count, and wakes the waiters. A failure to publish does not fail the
-- release: waiters poll. Redis deletes the hash with its last field.
-- KEYS[1] hash of the group
-- ARGV[1] value and holder  ARGV[2] channel  ARGV[3] not used
-- Reply   0 not the holder, otherwise 1 + the number of notified subscribers
local value, mine = split(ARGV[1])
if redis.call('HGET', KEYS[1], value) ~= mine then
  return 0
end
drop(KEYS[1], value, mine)
return 1 + notify(ARGV[2])
