-- In front of the scripts that publish: notifies who waits, and says how many heard it. What
-- fails (an ACL without the channel) fails nothing: waiters poll. The verb is that of fair.lua: here it is
-- in the text, because Alibaba Cloud refuses a script in which the name of a command is not.
local function notify(_, channel)
  if channel == '' then
    return 0
  end
  local heard = redis.pcall('PUBLISH', channel, '0')
  if type(heard) ~= 'number' then
    return 0
  end
  return heard
end
