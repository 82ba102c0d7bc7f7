-- Comes before settle.lua: the changes of the count of a latch (RCountDownLatch). Each returns a
-- number or an error.
local leasesOf, hex, clear -- there are no leases
local changes = {
  begin = function(key, n, channel) return fill(key, n, channel, nil, '1') end, -- closes the latch
  down = function(key, _, channel) -- "0" opens the latch
    local left = redis.pcall('DECR', key)
    if type(left) == 'number' and left <= 0 then
      local gone = redis.pcall('DEL', key)
      if type(gone) ~= 'number' then -- denied: undo
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
