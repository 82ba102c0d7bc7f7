-- Takes permits without a lease (RSemaphore).
-- KEYS[1] number of available permits
-- ARGV[1] operation, new for this acquisition: "take" takes n permits, "drain" all n
-- ARGV[2] not used  ARGV[3] channel  ARGV[4] PUBLISH or SPUBLISH  ARGV[5…] operations to forget, and
--         earlier operations of the same caller to undo
-- Reply   1 granted (also when the same call is executed twice), {-1, ''} too few permits are available
local key, op, ops = KEYS[1], ARGV[1], operationsOf(KEYS[1])
local moves = apart(key, ops)
if moves then
  return moves
end
local function take()
  for i = 5, #ARGV do
    if not forgets(ARGV[i]) then
      local undone = undo(key, ops, ARGV[3], ARGV[4], ARGV[i], string.match(ARGV[i], '%d+$'))
      if type(undone) == 'table' then -- an error
        return undone
      end
    end
  end
  local what, n = string.match(op, ':(%a+):(%d+)$')
  local available, wanted = count(key), tonumber(n)
  if available < wanted or what == 'drain' and available ~= wanted then
    return executed(ops, op) and 1 or {-1, ''}
  elseif executed(ops, '!' .. op) then
    return {-1, ''}
  elseif not remember(ops, op) then
    return 1
  end
  local left = redis.pcall('DECRBY', key, n)
  if type(left) ~= 'number' then -- denied: undo
    redis.call('ZREM', ops, op)
    return left
  end
  return 1
end
local taken = take()
forget(ops, 5, #ARGV)
return taken
