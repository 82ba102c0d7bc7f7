-- Renews several locks, behind renew.lua, which is the function one. One key that cannot be read or raised
-- does not stop the others.
-- KEYS    lock hashes
-- ARGV[1] lease in ms  ARGV[i+1] holder field of KEYS[i]
-- Reply   array of what one gives for each
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = one({key}, {ARGV[1], ARGV[i + 1]})[1]
end
return held
