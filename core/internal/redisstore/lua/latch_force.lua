-- Deletes a latch, whatever its count, and wakes its waiters. A value that is not a count stays
-- and yields an error.
-- KEYS[1] the count
-- ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
-- Reply   1 it existed, 0 it did not
count(KEYS[1])
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
notify(ARGV[2], ARGV[1], '1')
return 1
