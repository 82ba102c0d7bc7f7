-- Comes before inspect_key.lua and evict.lua, after rw.lua, rw_others.lua and holder.lua: inspects a key as
-- a lock, as far as its layout shows. It reads a bounded part of any value and writes nothing, so it
-- never takes long. It reads the other keys of a lock by pcall: while the slot moves, and without the right
-- to them, they count as absent.

-- believed is the number of timeout keys of readers to check. The remaining holds count as alive.
local believed = 20

-- integer returns a string if it is a number of 64 bits, nil otherwise.
local function integer(text)
  local digits = text and #text <= 20 and string.match(text, '^%-?(%d+)$')
  return digits and (#digits < 19 or #digits == 19 and digits <= '9223372036854775807') and text or nil
end

-- ms returns a remaining time for the reply: -1 if it is unlimited.
local function ms(left)
  return left == math.huge and -1 or left
end

-- drawn returns the last fencing token drawn from a counter, '' if there is none.
local function drawn(counter)
  local length = redis.pcall('STRLEN', counter)
  return type(length) == 'number' and length <= 20 and integer(redis.call('GET', counter)) or ''
end

-- queued returns the length of a queue and its first waiters.
local function queued(queue, most)
  local n = redis.pcall('LLEN', queue)
  if type(n) ~= 'number' or n == 0 then
    return 0, {}
  end
  return n, redis.call('LRANGE', queue, 0, most - 1)
end

-- alone returns the only holder of a hash without a mode, nil if that is not the hash of a lock.
local function alone(key)
  if redis.call('HLEN', key) ~= 1 then
    return nil
  end
  local field = redis.call('HKEYS', key)[1]
  if not holds(field) or redis.call('HSTRLEN', key, field) > 20 then
    return nil
  end
  local count = integer(redis.call('HGET', key, field))
  return count and {field, count, redis.call('PTTL', key)}
end

-- lasting returns a function that returns the remaining time of a reader's hold. That function checks a
-- limited number of timeout keys in all, the last ones of each reader first. For the remaining readers it
-- returns ttl, the TTL of the lock.
local function lasting(key, ttl, looks)
  return function(field, count)
    local most = 0
    for n = count, 1, -1 do
      if looks == 0 then
        return ttl
      end
      looks = looks - 1
      most = math.max(most, left(key, field, n) or 0)
    end
    return most > 0 and most or keyless(key, field)
  end
end

-- several returns the mode of a read/write lock, the number of its holders, and some of them; nil if
-- the hash is not a read/write lock.
local function several(key, most)
  local mode = redis.call('HGET', key, 'mode')
  local ends = redis.call('HSTRLEN', key, 'interlock_until') <= 21 and redis.call('HGET', key, 'interlock_until')
  local rest = ends and tonumber(string.sub(ends, 2)) and tonumber(string.sub(ends, 2)) - clock()
  if rest and rest <= 0 then
    mode, rest = 'read', nil
  end
  local length, fields = redis.call('HLEN', key), nil
  if length > most + 2 then
    fields = redis.call('HSCAN', key, 0, 'COUNT', most)[2]
  else
    fields = redis.call('HGETALL', key)
  end
  local ttl, alive, holders = redis.call('PTTL', key), 0, {}
  local has = lasting(key, ttl, believed)
  for i = 1, math.min(#fields, 2 * most + 4), 2 do
    local field, count = fields[i], integer(fields[i + 1])
    if field ~= 'mode' and field ~= 'interlock_until' then
      local writer = writes(field)
      if not count or not holds(writer and string.sub(field, 1, -7) or field) then
        return nil
      end
      local own = writer and (mode == 'write' and (rest or ttl) or 0) or has(field, tonumber(count))
      alive = alive + (own ~= 0 and 1 or 0)
      if own ~= 0 and alive <= most then
        holders[#holders + 1], holders[#holders + 2], holders[#holders + 3] = field, count, ms(own)
      end
    end
  end
  return mode, length > most + 2 and length - (ends and 2 or 1) or alive, holders
end

-- hashed returns the reply of inspect for a hash; nil if it is not the hash of a lock.
local function hashed(key, queue, counter, most)
  local length = redis.call('HSTRLEN', key, 'mode')
  local mode = (length == 4 or length == 5) and redis.call('HGET', key, 'mode')
  local ttl, token = redis.call('PTTL', key), drawn(counter)
  if mode == 'read' or mode == 'write' then
    local what, n, holders = several(key, most)
    return what and {what, ttl, n, holders, 0, {}, token, ''}
  end
  local holder = length == 0 and alone(key)
  if not holder then
    return nil
  end
  local n, waiters = queued(queue, most)
  local what = n > 0 and 'fair' or token ~= '' and 'fenced' or 'reentrant'
  return {what, ttl, 1, holder, n, waiters, token, ''}
end

-- counted returns the reply of inspect for a string; nil if it is not a count.
local function counted(key, leases, most)
  local available = redis.call('STRLEN', key) <= 20 and integer(redis.call('GET', key))
  if not available then
    return nil
  end
  local time = clock()
  local since = '(' .. string.format('%.0f', time)
  local out = redis.pcall('ZRANGEBYSCORE', leases, since, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  local holders = {}
  for i = 1, #out, 2 do
    if #out[i] ~= 16 then
      return nil
    end
    local ends, at = tonumber(out[i + 1]), #holders
    holders[at + 1] = (string.gsub(out[i], '.', function(byte) return string.format('%02x', string.byte(byte)) end))
    holders[at + 2], holders[at + 3] = '1', ends < 922337203685477 and ends - time or -1
  end
  if #holders == 0 then
    return {'plain_semaphore', redis.call('PTTL', key), 0, {}, 0, {}, '', available}
  end
  return {'semaphore', holders[3], redis.call('ZCOUNT', leases, since, '+inf'), holders, 0, {}, '', available}
end

-- inspect returns the name of the kind, '' for another value and 'none' for no value; the TTL in ms
-- as PTTL returns it; the number of holders, and up to most of them, as field, count, ms; the number
-- of waiters in its queue, and the first of them; the last fencing token; the number of available
-- permits. '' stands for a number that does not exist.
local function inspect(key, queue, counter, leases, most)
  local kind, reply = redis.call('TYPE', key), nil
  kind = type(kind) == 'table' and kind.ok or kind
  if kind == 'hash' then
    reply = hashed(key, queue, counter, most)
  elseif kind == 'string' then
    reply = counted(key, leases, most)
  elseif kind == 'none' then
    local n, waiters = queued(queue, most)
    reply = {n > 0 and 'fair' or 'none', -2, 0, {}, n, waiters, drawn(counter), ''}
  end
  return reply or {'', redis.call('PTTL', key), 0, {}, 0, {}, '', ''}
end

