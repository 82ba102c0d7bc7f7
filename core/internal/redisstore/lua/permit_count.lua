-- Counts the permits and gives back the permits whose lease has expired.
-- KEYS[1] number of available permits  KEYS[2] leases
-- ARGV[1] channel, empty for none  ARGV[2] PUBLISH or SPUBLISH
-- Reply   {available, acquired}
collect(KEYS[1], KEYS[2], now(), ARGV[2], ARGV[1])
return {count(KEYS[1]), redis.call('ZCARD', KEYS[2])}
