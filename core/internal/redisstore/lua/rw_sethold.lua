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
local before, after = tonumber(there), count -- timeout keys
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
if lease > 0 and not sure then -- the timeout keys cannot be extended
  return apart()
end
for n = before + 1, after do -- first: if it is denied, nothing has changed
  local kept = redis.pcall('SET', timeout(key, field, n), '1', 'PX', math.max(lease, own, 1))
  if kept.err then
    drop(key, field, before + 1, n)
    return passing(kept)
  end
end
local failed = lease > 0 and prolong(key, field, mode, rest, lease)
if failed then
  drop(key, field, before + 1, after)
  return failed
end
for _, n in ipairs(raised) do
  redis.pcall('PEXPIRE', timeout(key, field, n), lease)
end
if sure or after >= before then -- otherwise the timeout keys may not be found, and the release deletes them later by the count
  redis.call('HSET', key, field, count)
  drop(key, field, after + 1, before)
end
return 1
