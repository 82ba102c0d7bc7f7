-- Comes before the scripts that grant a lock: draws a fencing token (RFencedLock) if the call names a
-- counter, KEYS[2]. The fair lock replaces that by KEYS[5], because of its other keys.
-- A token is at least the server's time in microseconds, so that tokens keep rising if the counter was
-- lost. A client that only increments the counter, as Redisson does, continues from there. Numbers in scripts
-- are exact below 2^53 only. If another client set the counter to a larger value, no token is drawn.
local function draw()
  if not KEYS[2] then
    return 1
  end
  local time = redis.call('TIME')
  local least = time[1] * 1000000 + time[2]
  local token = redis.pcall('INCR', KEYS[2])
  if type(token) ~= 'number' and not string.find(token.err, 'overflow', 1, true) then
    return redis.call('INCR', KEYS[2]) -- raises the error unchanged
  elseif type(token) ~= 'number' or token >= 9007199254740992 then
    error('the counter of fencing tokens is too high: it has to be below 2^53', 0)
  elseif token < least then
    token = least
    redis.call('SET', KEYS[2], string.format('%.0f', token))
  end
  return token
end
