-- Inspects a key as a lock at one instant, on the master.
-- KEYS[1] the key
-- ARGV[1] queue of a fair lock  ARGV[2] counter of fencing tokens  ARGV[3] leases of permits
-- ARGV[4] the maximum number of holders and waiters to list
-- Reply   as inspect returns it
return inspect(KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]))
