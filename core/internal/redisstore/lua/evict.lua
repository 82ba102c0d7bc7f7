-- Frees a lock whoever holds it, behind inspect.lua and the force of its kind, which is the function force.
-- KEYS    as force wants them
-- ARGV[1], ARGV[2] as force wants them  ARGV[3] what the key was found to be
-- ARGV[4] queue of a fair lock  ARGV[5] counter of fencing tokens  ARGV[6] leases of permits
-- ARGV[7] so many holders and waiters at most
-- ARGV[8…] fields of which one has to hold it; none: whoever does
-- Reply   {what force gives, what inspect gave before}, {-2, …} it is something else by now,
--         {-3, …} none of the fields holds it: nothing was done
local seen = inspect(KEYS[1], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]))
if seen[1] ~= ARGV[3] then
  return {-2, seen}
end
local wanted = #ARGV < 8
for i = 8, #ARGV do
  for j = 1, #seen[4], 3 do
    wanted = wanted or seen[4][j] == ARGV[i]
  end
end
if not wanted then
  return {-3, seen}
end
return {force(), seen}
