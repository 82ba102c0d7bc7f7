-- Raises the lease of a value that the holder still has. With a lease of 0 it only reports whether it has it.
-- KEYS[1] hash of the group
-- ARGV[1] lease in ms  ARGV[2] value and holder
-- Reply   {1} held, {0} not the holder, {the message of an error}
local value, mine = split(ARGV[2])
local holder, lease = redis.pcall('HGET', KEYS[1], value), tonumber(ARGV[1])
if type(holder) == 'table' then
  return {holder.err}
elseif holder ~= mine then
  return {0}
end
if lease > 0 then
  local now = clock()
  local _, left = holderOf(KEYS[1], value, now)
  lease = math.max(left, lease)
  local denied = write(KEYS[1], lease, value .. ':' .. mine .. ':expire_time', string.format('%.0f', now + lease))
  if denied then
    return {denied.err}
  end
end
return {1}
