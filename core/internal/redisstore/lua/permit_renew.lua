-- Raises the leases of permits that are out. With a lease of 0 it only reports whether they are. A key that
-- cannot be read or raised does not stop the others.
-- KEYS    leases (of a single semaphore in a Cluster)
-- ARGV[1] lease in ms  ARGV[i+1] permit of KEYS[i]
-- Reply   array of 1 held, 0 not the holder, or the message of an error
local ttl, time = tonumber(ARGV[1]), now()
local function renew(leases, id)
  local score = redis.pcall('ZSCORE', leases, id)
  if type(score) == 'table' then
    return score.err
  end
  score = tonumber(score or 0)
  if score <= time then
    return 0
  end
  if ttl > 0 and score < time + ttl then
    local raised = redis.pcall('ZADD', leases, 'XX', string.format('%.0f', time + ttl), id)
    if type(raised) ~= 'number' then
      return raised.err
    end
  end
  return 1
end
local held = {}
for i, key in ipairs(KEYS) do
  held[i] = renew(key, ARGV[i + 1])
end
return held
