-- Removes a holder from the lock, whatever its count, and wakes the waiters if they may now have it. A
-- failure to publish (an ACL without the channel) does not fail the release: waiters poll.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
-- Reply   0 not the holder, -1 other holders remain and no message was sent, otherwise 1 + the number of
--         notified subscribers; {that} if the slot moves, so that something may be left for clear
local count, mode, rest = look(KEYS[1], ARGV[1])
if not count then
  return 0
end
local message, behind = leave(KEYS[1], ARGV[1], tonumber(count), mode, rest)
local reply = -1
if message then
  local notified = redis.pcall(ARGV[3], ARGV[2], message)
  reply = 1 + (type(notified) == 'number' and notified or 0)
end
return behind and {reply} or reply
