-- In front of the scripts of semaphores and latches. What is beside the count of a key is in keys
-- that follow from it.
-- Redis formats a number that is an argument of a command, which takes as long as the command: where
-- there is a text, that is passed on.
-- notify gives the number of subscribers that were notified; a publish that fails fails nothing.
-- publish says that there is room, if there is some: Redisson cannot read less than 0.
local function beside(key, suffix)
  if string.find(key, '{', 1, true) then
    return key .. ':' .. suffix
  end
  return '{' .. key .. '}:' .. suffix
end
local function notify(verb, channel, text)
  local notified = channel ~= '' and redis.pcall(verb, channel, text)
  return type(notified) == 'number' and notified or 0
end
local function publish(verb, channel, n)
  return n > 0 and notify(verb, channel, string.format('%.0f', n)) or 0
end
-- apart gives an error that passes where a key of these is on another node, or may be, because their
-- slot moves: what was done already would not be seen. Only a command over several keys tells one that
-- is on the other node from one that is nowhere.
local function apart(...)
  local found = redis.pcall('EXISTS', ...)
  if type(found) == 'number' then
    return nil
  elseif string.find(found.err, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot of the count moves')
  end
  return found
end
-- Of what is no number Redis says so itself, when it is to be added to.
local function count(key)
  return tonumber(redis.call('GET', key) or 0) or redis.call('INCRBY', key, 0)
end
