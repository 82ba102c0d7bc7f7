-- Renews several locks. renew.lua stands before it as the function one. A key that cannot be read or raised
-- does not stop the others.
-- KEYS    lock hashes
-- ARGV[1] lease in ms  ARGV[i+1] holder field of KEYS[i]
-- Reply   for every key the reply of renew.lua
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = one({key}, {ARGV[1], ARGV[i + 1]})[1]
end
return held
