-- Comes before the scripts that publish: notifies the waiters and returns how many subscribers there are.
-- A failure (an ACL without the channel) is ignored: waiters poll. Only the notify of fair.lua uses the
-- first argument. Here the source contains the command, because Alibaba Cloud refuses other scripts.
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
