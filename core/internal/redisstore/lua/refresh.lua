-- Sets the TTL of a held lock, up or down.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] lease in ms
-- Reply   1 done, 0 not the holder
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
