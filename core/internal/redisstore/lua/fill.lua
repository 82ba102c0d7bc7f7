-- Comes before settle_….lua: functions for keys that may not be counts.
local verb = ARGV[1]
-- unread returns the error of a key that is not a count, nil otherwise.
local function unread(key)
  local before = redis.pcall('GET', key)
  return type(before) == 'table' and before or nil
end
-- fill sets and publishes a count that does not exist. It returns 1, 0 if the count exists, or an
-- error.
local function fill(key, n, channel, _, text)
  local set = unread(key) or redis.pcall('SETNX', key, n)
  if set == 1 and n ~= '0' then
    notify(verb, channel, text or n)
  end
  return set
end
-- increase adds to a count while a number of permits are acquired. It returns the new count, an error, or
-- false: the count would leave the range that Redisson can read and is unchanged.
local function increase(key, n, out)
  local available = redis.pcall('INCRBY', key, n)
  if type(available) ~= 'number' then
    return not string.find(available.err, 'overflow', 1, true) and available
  elseif available + out > 2147483647 or available < -2147483648 then
    redis.call('INCRBY', key, string.format('%.0f', -n))
    return false
  end
  return available
end
