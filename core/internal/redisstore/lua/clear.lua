-- Clears up what commands without an answer may have left: frees each lock that one of its fields
-- holds, and wakes the waiters. One key that cannot be read does not stop the others.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel (empty for none), number of fields, fields
-- Reply   for every key the fields that were there before, or the text of an error
local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local last = at + 1 + tonumber(ARGV[at + 1])
  local fields = redis.pcall('HKEYS', key)
  found[i] = fields.err or fields
  for j = at + 2, last do
    if not fields.err and redis.call('HEXISTS', key, ARGV[j]) == 1 then
      redis.call('DEL', key)
      if ARGV[at] ~= '' then
        redis.pcall(ARGV[1], ARGV[at], '0')
      end
    end
  end
  at = last + 1
end
return found
