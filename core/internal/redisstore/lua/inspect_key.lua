-- Tells what a key is as a lock, in one instant, on the master.
-- KEYS[1] the key
-- ARGV[1] queue of a fair lock  ARGV[2] counter of fencing tokens  ARGV[3] leases of permits
-- ARGV[4] so many holders and waiters at most
-- Reply   as inspect gives it
return inspect(KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]))
