-- Gives a permit back, once, and notifies those who wait. One whose lease was over is given back
-- too, but was not held any more.
-- KEYS[1] how many are available  KEYS[2] leases
-- ARGV[1] permit  ARGV[2] channel, empty for none  ARGV[3] PUBLISH or SPUBLISH
-- Reply   0 not the holder, -1 given back and nobody notified: there are less permits by now, and
--         none is available; else 1 + the number of subscribers that were notified
local available, ends = giveBack(KEYS[1], KEYS[2], ARGV[1])
if not available then
  return 0
end
if type(available) ~= 'number' then
  return available
end
local notified = publish(ARGV[3], ARGV[2], available)
if ends <= now() then
  return 0
end
return available > 0 and 1 + notified or -1
