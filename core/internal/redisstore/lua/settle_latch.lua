-- In front of settle.lua: what changes the count of a latch (RCountDownLatch). Each gives a number,
-- or an error.
local leasesOf, hex, clear -- there are no leases
local changes = {
  begin = function(key, n, channel) return fill(key, n, channel, nil, '1') end, -- closes it
  down = function(key, _, channel) -- "0" opens it
    local left = redis.pcall('DECR', key)
    if type(left) == 'number' and left <= 0 then
      local gone = redis.pcall('DEL', key)
      if type(gone) ~= 'number' then -- denied: all is put back
        redis.call('INCR', key)
        return gone
      end
    end
    if left == 0 then
      notify(verb, channel, '0')
    end
    return left
  end,
}
