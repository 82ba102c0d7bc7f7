-- Comes before the scripts of a group lock (RedissonFasterMultiLock): many values in one hash, each a separate lock.
-- A value has three fields: <value> is the holder, <value>:<holder>:expire_time the end of its lease in ms since 1970,
-- <value>:<holder>:lock_count its hold count. The TTL of the hash is 100 ms longer than the
-- longest lease. A script gets a value and a holder as one argument, "<value>:<holder>"; a value contains no colon.
-- Redisson compares the end of a lease with the clock of each client; these scripts use the clock of the server.
local function split(member)
  return string.match(member, '^([^:]+):(.*)$')
end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- holderOf returns the holder of a value and the rest of its lease in ms; false if the value is free. The rest may be
-- negative: the value is then free, but its fields are still there.
local function holderOf(key, value, now)
  local holder = redis.call('HGET', key, value)
  if not holder then
    return false
  end
  return holder, (tonumber(redis.call('HGET', key, value .. ':' .. holder .. ':expire_time')) or 0) - now
end

-- fields returns the names and the values of the fields of a holder.
local function fields(value, holder, ends, count)
  return value, holder, value .. ':' .. holder .. ':expire_time', string.format('%.0f', ends), value .. ':' .. holder .. ':lock_count', count
end

-- drop removes the fields that belong to a holder, and the value itself unless another holder has it.
local function drop(key, value, holder, keeps)
  local ends, count = value .. ':' .. holder .. ':expire_time', value .. ':' .. holder .. ':lock_count'
  redis.call('HDEL', key, ends, count, keeps and ends or value)
end

-- raise raises the TTL of the hash, which is now ttl, to 100 ms more than a lease. Without the 100 ms, a caller of Redisson that
-- acquires the lock when the lease ends would lose it at once, because Redisson does not raise a TTL of less than 1 ms. raise
-- returns the error of PEXPIRE, nil otherwise.
local function raise(key, ttl, lease)
  if ttl < lease + 100 then
    local leased = redis.pcall('PEXPIRE', key, lease + 100)
    return type(leased) ~= 'number' and leased or nil
  end
end

-- write raises the TTL of the hash for a lease and writes fields. It returns an error if one of the two is denied; then nothing
-- has changed.
local function write(key, lease, ...)
  local ttl = redis.call('PTTL', key)
  local denied = raise(key, ttl, lease)
  if denied then
    return denied
  end
  local set = redis.pcall('HSET', key, ...)
  if type(set) == 'number' then
    return nil
  end
  if ttl >= 0 and ttl < lease + 100 then
    redis.call('PEXPIRE', key, ttl)
  end
  return set
end

-- notify wakes all waiters of each client ("1"), because they may wait for other values; "0" would wake one of them.
local function notify(channel)
  local heard = redis.pcall('PUBLISH', channel, '1')
  return type(heard) == 'number' and heard or 0
end
