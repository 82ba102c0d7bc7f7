-- Reads which permits are out at one instant, on the master.
-- KEYS[1] leases
-- Reply   {ms until the first lease expires, -1 never, -2 no permit is out, permit, '1', permit, '1', …}
local time = now()
local out = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', time), '+inf', 'WITHSCORES')
local reply = {-2}
for i = 1, #out, 2 do
  reply[i + 1], reply[i + 2] = hex(out[i]), '1'
end
if #out > 0 then
  local ends = tonumber(out[2])
  reply[1] = ends == never and -1 or ends - time
end
return reply
