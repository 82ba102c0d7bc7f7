-- Frees the lock if the field holds it, whatever its count, and wakes the waiters. A failure to publish (an
-- ACL without the channel) does not fail the release: waiters poll.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] channel, empty for none  ARGV[3] PUBLISH or SPUBLISH
-- Reply   0 not the holder, otherwise 1 + the number of notified subscribers
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[1])
return 1 + notify(ARGV[3], ARGV[2])
