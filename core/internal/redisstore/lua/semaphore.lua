-- Comes before the scripts of semaphores and latches. Their other keys are derived from the key of the count.
-- Redis formats a number that is an argument of a command, which takes as long as the command. So the scripts
-- pass on a string where they have one.
-- notify returns the number of notified subscribers and ignores a failure to publish. publish announces the
-- number of available permits if it is positive; Redisson cannot read a number below 0.
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
-- apart returns a temporary error if one of these keys is on another node, or may be,
-- because their slot moves. Otherwise a script would not see earlier operations. Only a command over
-- several keys can distinguish a key on the other node from a key that does not exist.
local function apart(...)
  local found = redis.pcall('EXISTS', ...)
  if type(found) == 'number' then
    return nil
  elseif string.find(found.err, 'non local key', 1, true) then
    return redis.error_reply('TRYAGAIN the slot of the count moves')
  end
  return found
end
-- count returns a count. If the value is not a number, the INCRBY raises the error of Redis.
local function count(key)
  return tonumber(redis.call('GET', key) or 0) or redis.call('INCRBY', key, 0)
end
