-- Comes before settle.lua: the changes of the count of a latch (RCountDownLatch). Each returns a
-- number or an error.
local leasesOf, hex, clear -- there are no leases
local changes = {
  begin = function(key, n, channel) return fill(key, n, channel, nil, '1') end, -- closes the latch
  down = function(key, _, channel) -- "0" opens the latch
    local left = redis.pcall('GET', key)
    if type(left) == 'table' then
      return left
    end
    local digits = string.match(left or '0', '^-?%d+$')
    left = digits and tonumber(digits)
    if left and left <= 1 then
      local gone = redis.pcall('DEL', key)
      left = type(gone) == 'number' and left - 1 or gone
    else
      left = redis.pcall('DECR', key)
    end
    if left == 0 then
      notify(verb, channel, '0')
    end
    return left
  end,
}
