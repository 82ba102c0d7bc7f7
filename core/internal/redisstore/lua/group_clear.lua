-- Cleans up after unanswered commands: frees the value if one of the holders has it and wakes the waiters.
-- KEYS[1] hash of the group
-- ARGV[1] PUBLISH or SPUBLISH, not used  ARGV[2] channel  ARGV[3] number of holders  ARGV[4…] value and holder
-- Reply   {{the holder that was there before}, or the message of an error}
local value = split(ARGV[4])
local holder = redis.pcall('HGET', KEYS[1], value)
if type(holder) == 'table' then
  return {holder.err}
end
for i = 4, #ARGV do
  local _, mine = split(ARGV[i])
  if holder == mine then
    drop(KEYS[1], value, mine)
    notify(ARGV[2])
  end
end
return {holder and {holder} or {}}
