-- Gives a permit back, once, and notifies the waiters. A permit whose lease has expired is given back, too,
-- but was not held any more.
-- KEYS[1] number of available permits  KEYS[2] leases
-- ARGV[1] permit  ARGV[2] channel, empty for none  ARGV[3] PUBLISH or SPUBLISH
-- Reply   0 not the holder, -1 given back without a message: there are now fewer permits, and none is
--         available; otherwise 1 + the number of notified subscribers
local time = now()
local available, ends = giveBack(KEYS[1], KEYS[2], ARGV[1])
if not available then
  return 0
end
if type(available) ~= 'number' then
  return available
end
local notified = publish(ARGV[3], ARGV[2], available)
if ends <= time then
  return 0
end
return available > 0 and 1 + notified or -1
