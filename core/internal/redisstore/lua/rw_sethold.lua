-- Sets the hold count of a holder, and a timeout key for each count of a reader: re-entry and partial release.
-- It never creates the lock and never lowers a TTL. A reader whose timeout key is missing lost its hold.
-- KEYS[1] lock hash
-- ARGV[1] holder field  ARGV[2] hold count  ARGV[3] lease in ms to which the TTLs are raised, 0 leaves them
-- Reply   1 done, 0 not the holder
local key, field, count, lease = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local there, mode, rest = look(key, field)
if not there then
  return 0
end
local before, after, ttl = tonumber(there), count, lease > 0 and redis.call('PTTL', key) -- before and after: timeout keys
if writes(field) then
  before, after = 0, 0
end
local raised, own, sure = {}, 0, true
for n = 1, before do
  local ttl = left(key, field, n)
  if ttl == 0 then
    return 0
  end
  own, sure = math.max(own, ttl or 0), sure and ttl ~= nil
  if n <= after and ttl and ttl < lease then
    raised[#raised + 1] = n
  end
end
if not sure and (lease > 0 or refused) then -- the timeout keys cannot be extended
  return apart()
end
if not sure and after < before then -- they cannot be deleted either: the last release does that, by the count
  return 1
end
for n = before + 1, after do -- first: if it is denied, nothing has changed
  local kept = redis.pcall('SET', timeout(key, field, n), '1', 'PX', math.max(lease, own, 1))
  if kept.err then
    drop(key, field, before + 1, n)
    return passing(kept)
  end
end
local set = redis.pcall('HSET', key, field, count)
local failed = type(set) ~= 'number' and set or lease > 0 and prolong(key, field, mode, rest, ttl, lease)
for i = 1, failed and 0 or #raised do
  local raises = redis.pcall('PEXPIRE', timeout(key, field, raised[i]), lease)
  failed = failed or type(raises) ~= 'number' and passing(raises)
end
if failed then -- denied: undo
  redis.pcall('HSET', key, field, there)
  drop(key, field, before + 1, after)
  return failed
end
drop(key, field, after + 1, before)
return 1
