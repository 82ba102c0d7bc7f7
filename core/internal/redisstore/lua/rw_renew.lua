-- Raises the leases of locks that the given writers, or readers with their timeout keys, still hold. With a
-- lease of 0 it only reports whether they do. A reader whose timeout key is missing lost its hold, because a
-- client that saw it missing may have taken the lock. A lock that cannot be read or raised does not stop the others.
-- KEYS    lock hashes (a single one in a Cluster)
-- ARGV[1] lease in ms  ARGV[i+1] holder field of KEYS[i]
-- Reply   array of 1 held, 0 not the holder, or the message of an error
local lease = tonumber(ARGV[1])
local function renew(key, field)
  local there = redis.pcall('HEXISTS', key, field)
  if there ~= 1 then
    return type(there) == 'table' and there.err or 0
  end
  local count, mode, rest = look(key, field)
  local short = {}
  for n = 1, not writes(field) and tonumber(count) or 0 do
    local ttl = left(key, field, n)
    if not ttl then
      return apart().err
    elseif ttl == 0 then
      return 0
    elseif ttl < lease then
      short[#short + 1] = timeout(key, field, n)
    end
  end
  local failed = count and lease > 0 and prolong(key, field, mode, rest, redis.call('PTTL', key), lease) -- first: no timeout key outlives the lock
  for i = 1, failed and 0 or #short do
    local set = redis.pcall('PEXPIRE', short[i], lease)
    failed = failed or type(set) ~= 'number' and set
  end
  if failed then
    return failed.err
  end
  return count and 1 or 0
end
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = renew(key, ARGV[i + 1])
end
return held
