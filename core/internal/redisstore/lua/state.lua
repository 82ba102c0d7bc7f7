-- Reads a lock at one instant, on the master.
-- KEYS[1] lock hash
-- Reply   {ttl in ms as PTTL gives it, field, count, field, count, …}
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, redis.call('PTTL', KEYS[1]))
return reply
