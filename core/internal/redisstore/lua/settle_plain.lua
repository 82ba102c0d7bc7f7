-- Comes before settle.lua: the changes of the count of a semaphore without leases (RSemaphore). Each
-- returns a number or an error.
local leasesOf, hex, clear -- there are no leases
local changes = {
  give = function(key, n, channel)
    local available = increase(key, n, 0)
    if type(available) == 'number' then
      publish(verb, channel, available)
    end
    return available
  end,
  set = fill,
}
