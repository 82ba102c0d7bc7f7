-- Cleans up several locks. clear.lua comes before it as the function one. A key that cannot be read does
-- not stop the others.
-- KEYS    lock hashes
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel, number of fields, fields
-- Reply   for every key the reply of clear.lua
local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local args, last = {ARGV[1]}, at + 1 + tonumber(ARGV[at + 1])
  for j = at, last do
    args[#args + 1] = ARGV[j]
  end
  found[i], at = one({key}, args)[1], last + 1
end
return found
