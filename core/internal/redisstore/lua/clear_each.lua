-- Clears up several locks, behind clear.lua, which is the function one. One key that cannot be read does
-- not stop the others.
-- KEYS    lock hashes
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel, number of fields, fields
-- Reply   array of what one gives for each
local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local args, last = {ARGV[1]}, at + 1 + tonumber(ARGV[at + 1])
  for j = at, last do
    args[#args + 1] = ARGV[j]
  end
  found[i], at = one({key}, args)[1], last + 1
end
return found
