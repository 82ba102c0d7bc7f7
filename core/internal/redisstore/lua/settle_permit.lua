-- Comes before settle.lua: the changes of the count of a semaphore with leases
-- (RPermitExpirableSemaphore). Each returns a number or an error. Permits are listed among operations, so
-- they are hex digits here.
local function leasesOf(key) return beside(key, 'timeout') end
local function raw(id)
  return (string.gsub(id, '%x%x', function(digits) return string.char(tonumber(digits, 16)) end))
end
local changes = {
  set = fill,
  add = function(key, n, channel)
    local available = increase(key, n, redis.call('ZCARD', leasesOf(key)))
    if type(available) == 'number' then
      publish(verb, channel, tonumber(n))
    end
    return available
  end,
  total = function(key, n, channel)
    return unread(key) or adjust(key, leasesOf(key), tonumber(n), verb, channel)
  end,
  back = function(key, _, channel, op) -- a permit, by its id; 0 if it was not held
    local err = unread(key)
    if err then
      return err
    end
    local available, ends = giveBack(key, leasesOf(key), raw(string.match(op, ':(%x+):back:')))
    if type(available) ~= 'number' then
      return available or 0
    end
    publish(verb, channel, available)
    return ends > now() and 1 or 0
  end,
}
-- clear gives back a permit without a holder.
local function clear(key, channel, id)
  local available = giveBack(key, leasesOf(key), raw(id))
  if type(available) ~= 'number' then
    return available
  end
  publish(verb, channel, available)
  return id
end
