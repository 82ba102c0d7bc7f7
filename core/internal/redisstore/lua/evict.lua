-- Takes a lock from some of its holders; the others keep it. inspect.lua comes before it, and the release
-- of the kind as the function release.
-- KEYS    as release needs them
-- ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH  ARGV[3] the kind that was found in the key
-- ARGV[4] queue of a fair lock  ARGV[5] counter of fencing tokens  ARGV[6] leases of permits
-- ARGV[7] the maximum number of holders and waiters to list
-- ARGV[8…] fields of the holders, as release needs them
-- Reply   {the reply of inspect before, {the indexes of the fields that lost the lock, from 0}}; without
--         the second element the key had changed, and nothing was done
local seen = inspect(KEYS[1], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]))
if seen[1] ~= ARGV[3] then
  return {seen}
end
local lost = {}
for i = 8, #ARGV do
  local done = release(KEYS, {ARGV[i], ARGV[1], ARGV[2]})
  if type(done) == 'table' and done.err then
    return done
  end
  if done ~= 0 then
    lost[#lost + 1] = i - 8
  end
end
return {seen, lost}
