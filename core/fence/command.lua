-- Runs a command, unless a holder with a larger token has already run one on its key.
-- KEYS[1] key of the command  KEYS[2] largest token so far
-- ARGV[1] token, below 2^53  ARGV[2] name of the command  ARGV[3] … its arguments after the key
-- Reply   the reply of the command, or the error STALETOKEN
-- If Redis refuses the command, the token stays: its holder is newer than those with smaller tokens.
local latest = tonumber(redis.call('GET', KEYS[2]) or 0)
local token = tonumber(ARGV[1])
if latest > token then
  return redis.error_reply(string.format('STALETOKEN %.0f is smaller than %.0f', token, latest))
elseif latest < token then
  redis.call('SET', KEYS[2], ARGV[1])
end
return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
