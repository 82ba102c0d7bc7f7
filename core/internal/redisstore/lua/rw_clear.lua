-- Cleans up after unanswered commands: removes the given fields from each lock, as their release
-- would, and wakes the waiters. A key that cannot be read does not stop the others.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel, number of fields, fields
-- Reply   for every key the fields that were there before, or the message of an error
local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local last = at + 1 + tonumber(ARGV[at + 1])
  local fields = redis.pcall('HKEYS', key)
  found[i] = fields.err or fields
  for j = at + 2, last do
    local count, mode, rest
    if not fields.err then
      count, mode, rest = look(key, ARGV[j])
    end
    local message = count and leave(key, ARGV[j], tonumber(count), mode, rest)
    if message then
      redis.pcall(ARGV[1], ARGV[at], message)
    end
  end
  at = last + 1
end
return found
