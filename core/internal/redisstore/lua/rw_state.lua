-- Reads a lock at one instant, on the master: its writer, and the readers that are alive.
-- KEYS[1] lock hash
-- Reply   {ttl in ms as PTTL gives it, field, count, field, count, …}
local key = KEYS[1]
local hash, reply = redis.call('HGETALL', key), {redis.call('PTTL', key)}
local found = redis.call('HMGET', key, 'mode', 'interlock_until')
local mode = found[1]
if found[2] and tonumber(string.sub(found[2], 2)) <= clock() then
  mode = 'read'
end
for i = 1, #hash, 2 do
  local alive = hash[i] ~= 'mode' and hash[i] ~= 'interlock_until' and not (mode == 'read' and writes(hash[i]))
  for n = 1, alive and not writes(hash[i]) and tonumber(hash[i + 1]) or 0 do
    alive = left(key, hash[i], n) ~= 0
    if alive then
      break
    end
  end
  alive = alive or mode == 'read' and tonumber(hash[i + 1]) and not writes(hash[i]) and keyless(key, hash[i]) > 0
  if alive then
    reply[#reply + 1], reply[#reply + 2] = hash[i], hash[i + 1]
  end
end
return reply
