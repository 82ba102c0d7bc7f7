-- In front of settle_….lua: for keys that may be no counts.
local verb = ARGV[1]
-- Gives the error of a key that is no count.
local function unread(key)
  local before = redis.pcall('GET', key)
  return type(before) == 'table' and before or nil
end
-- Sets and publishes a count that is not there. Gives 1, 0 if one is, or an error.
local function fill(key, n, channel, _, text)
  local set = unread(key) or redis.pcall('SETNX', key, n)
  if set == 1 and n ~= '0' then
    notify(verb, channel, text or n)
  end
  return set
end
-- Adds to a count beside which so many permits are out. Gives what it is then, an error, or false:
-- there would be more or less than Redisson can read, and it is as it was.
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
