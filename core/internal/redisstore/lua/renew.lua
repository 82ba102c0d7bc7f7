-- Raises the TTL of locks that are still held by the given fields. With a lease of 0 it only
-- tells whether they are. One key that cannot be read or raised does not stop the others.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] lease in ms  ARGV[i+1] holder field of KEYS[i]
-- Reply   array of 1 held, 0 not the holder, or the text of an error
local lease = tonumber(ARGV[1])
local function renew(key, field)
  local mine = redis.pcall('HEXISTS', key, field)
  if type(mine) ~= 'number' then
    return mine.err
  end
  if lease > 0 and mine == 1 and redis.call('PTTL', key) < lease then
    local raised = redis.pcall('PEXPIRE', key, lease)
    if type(raised) ~= 'number' then
      return raised.err
    end
  end
  return mine
end
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = renew(key, ARGV[i + 1])
end
return held
