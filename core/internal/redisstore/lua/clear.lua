-- Cleans up after unanswered commands: frees the lock if one of the fields holds it and wakes the
-- waiters.
-- KEYS[1] lock hash
-- ARGV[1] PUBLISH or SPUBLISH  ARGV[2] channel, empty for none  ARGV[3] number of fields  ARGV[4…] fields
-- Reply   {the fields that were there before, or the message of an error}
local fields = redis.pcall('HKEYS', KEYS[1])
for i = 4, #ARGV do
  if not fields.err and redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('DEL', KEYS[1])
    notify(ARGV[1], ARGV[2])
  end
end
return {fields.err or fields}
