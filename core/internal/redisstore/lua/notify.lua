-- In front of the scripts that publish: notifies who waits, and says how many heard it. What
-- fails (an ACL without the channel) fails nothing: waiters poll.
local function notify(verb, channel)
  if channel == '' then
    return 0
  end
  local heard = redis.pcall(verb, channel, '0')
  if type(heard) ~= 'number' then
    return 0
  end
  return heard
end
