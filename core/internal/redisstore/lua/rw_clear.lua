-- Cleans up after unanswered commands: removes the given fields from each lock, as their release
-- would, and wakes the waiters. A key that cannot be read does not stop the others. It also deletes what a
-- release left of a holder while the slot moved. While a timeout key may be on the other node, it changes nothing.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] PUBLISH or SPUBLISH, then for every key: channel, number of fields, fields
-- Reply   for every key the fields that were there before, or the message of an error

-- moves reports whether the timeout key of a reader, or of one of the fields in some arguments, may be on the other node.
local function moves(key, first, last)
  local away = not longest(key, math.huge)
  for j = first, last do
    away = away or not writes(ARGV[j]) and not left(key, ARGV[j], 1)
  end
  return away
end

-- clear removes a field, or what is left of it, and returns the message for the waiters, or nil.
local function clear(key, field)
  local count, mode, rest = look(key, field)
  if count then
    return (leave(key, field, tonumber(count), mode, rest, true))
  end
  local n = 1
  while not writes(field) and redis.pcall('DEL', timeout(key, field, n)) == 1 do
    n = n + 1
  end
  return mode and part(key, '', 0, mode, rest, true) and '0' or nil -- the name of no reader
end

local found, at = {}, 2
for i, key in ipairs(KEYS) do
  local last = at + 1 + tonumber(ARGV[at + 1])
  local fields = redis.pcall('HKEYS', key)
  found[i] = fields.err or fields
  if not fields.err and moves(key, at + 2, last) then
    found[i] = apart().err
  end
  for j = at + 2, found[i] == fields and last or 0 do
    local message = clear(key, ARGV[j])
    if message then
      redis.pcall(ARGV[1], ARGV[at], message)
    end
  end
  at = last + 1
end
return found
