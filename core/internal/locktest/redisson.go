package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Stranger is the field of a holder in another process that uses Redisson.
const Stranger = "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:57"

// ChannelOf returns the channel of the messages of a lock.
func ChannelOf(key string) string { return "redisson_lock__channel:" + Tagged(key) }

// ReadWriteChannelOf returns the channel of the messages of a read-write lock.
func ReadWriteChannelOf(key string) string { return "redisson_rwlock:" + Tagged(key) }

// ReaderTimeoutOf returns the name of the nth timeout key of a reader.
func ReaderTimeoutOf(key, field, n string) string {
	return Tagged(key) + ":" + field + ":rwlock_timeout:" + n
}

// TokenCounterOf returns the name of the counter of fencing tokens of a lock.
func TokenCounterOf(key string) string { return "redisson_lock_token:" + Tagged(key) }

// FairQueue returns the name of the queue of a fair lock.
func FairQueue(key string) string { return "redisson_lock_queue:" + Tagged(key) }

// FairDeadlines returns the name of the deadlines of the waiters of a fair lock.
func FairDeadlines(key string) string { return "redisson_lock_timeout:" + Tagged(key) }

// The names of a semaphore "pool" with leases.
const (
	PermitChannel = "redisson_sc:{pool}"
	PermitLeases  = "{pool}:timeout"
	// PermitForEver is the score in PermitLeases of a permit that has no lease.
	PermitForEver = "922337203685477"
)

// Take writes a lock as Redisson does, even if another client holds it.
func (b *Redis) Take(key, field string, lease time.Duration) {
	b.T.Helper()
	_, err := b.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Del(context.Background(), key)
		p.HSet(context.Background(), key, field, 1)
		p.PExpire(context.Background(), key, lease)
		return nil
	})
	Must(b.T, err)
}

// Steal takes a lock for Stranger, even if another client holds it.
func (b *Redis) Steal(key string) { b.T.Helper(); b.Take(key, Stranger, time.Hour) }

// Free releases a lock as Redisson does, whichever client holds it.
func (b *Redis) Free(key string) {
	b.T.Helper()
	err := b.Eval(context.Background(), `redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], '0'); return 1`,
		[]string{key, ChannelOf(key)}).Err()
	Must(b.T, err)
}

// RedissonTryLock is the script of RLock.tryLock. It returns nil if the caller has the lock now, and the TTL of the
// holder otherwise. ARGV: the lease in ms, the field of the thread.
const RedissonTryLock = `
	if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
		redis.call('hincrby', KEYS[1], ARGV[2], 1)
		redis.call('pexpire', KEYS[1], ARGV[1])
		return nil
	end
	return redis.call('pttl', KEYS[1])`

// RedissonField is a field of a thread of a Redisson client. Tests append digits to it.
const RedissonField = "5a1f0a0e-9f0b-4a3e-8d33-3f5a1be0b1de:71"

// Redisson is a thread of a Redisson client. It waits as RLock does, and does not follow this library's rule of turns.
type Redisson struct {
	Redis *redis.Client
	Field string

	t        *testing.T
	attempts atomic.Int32
}

// NewRedisson returns a thread with a separate connection.
func (b *Redis) NewRedisson(t *testing.T, field string) *Redisson {
	t.Helper()
	return &Redisson{t: t, Redis: b.Connect(), Field: field}
}

// AwaitSleep waits until a waiter has made its second attempt, after which it sleeps.
func (j *Redisson) AwaitSleep() {
	j.t.Helper()
	Eventually(j.t, "the waiter to sleep", func() bool { return j.attempts.Load() >= 2 })
}

// attempt tries to take the lock like RLock.tryLockInner. If another holder has the lock, attempt returns its TTL.
func (j *Redisson) attempt(key string) (taken bool, ttl time.Duration) {
	j.t.Helper()
	defer j.attempts.Add(1)
	ms, err := j.Redis.Eval(j.t.Context(), RedissonTryLock, []string{key}, 30_000, j.Field).Int64()
	if err != nil && !errors.Is(err, redis.Nil) && j.t.Context().Err() == nil {
		j.t.Error(err)
	}
	return errors.Is(err, redis.Nil), time.Duration(ms) * time.Millisecond
}

// Lock takes a lock like RLock.tryLock(wait). It attempts, subscribes, attempts again, and then waits for a message or for
// the end of the TTL that it saw, whichever is first. It does not poll.
func (j *Redisson) Lock(key string, wait time.Duration) bool {
	j.t.Helper()
	if taken, _ := j.attempt(key); taken {
		return true
	}
	end := time.Now().Add(wait)
	sub := j.Redis.Subscribe(j.t.Context(), ChannelOf(key))
	defer sub.Close()
	if _, err := sub.Receive(j.t.Context()); err != nil {
		return false // the test has ended
	}
	messages := sub.Channel()
	for {
		taken, ttl := j.attempt(key)
		left := time.Until(end)
		if taken || left <= 0 {
			return taken
		}
		select {
		case <-messages:
		case <-time.After(min(ttl, left)):
		case <-j.t.Context().Done():
			return false
		}
	}
}

// RedissonUnlock is the script of RLock.unlock for a lock that is held once. It returns nil if the caller does not have the
// lock. ARGV: the field of the thread.
const RedissonUnlock = `
	if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
	redis.call('del', KEYS[1])
	redis.call('publish', KEYS[2], '0')
	return 1`

// Unlock releases a lock like RLock.unlock. The lock must be held once.
func (j *Redisson) Unlock(key string) {
	j.t.Helper()
	if err := j.Redis.Eval(context.Background(), RedissonUnlock, []string{key, ChannelOf(key)}, j.Field).Err(); err != nil {
		j.t.Errorf("unlock %s: %v", key, err)
	}
}

// ReadWriteThread is a thread of a Redisson client that uses a read-write lock.
type ReadWriteThread struct {
	*Redis

	Field string
}

// NewReadWriteThread returns the nth thread of Stranger's client.
func (b *Redis) NewReadWriteThread(n string) *ReadWriteThread {
	return &ReadWriteThread{b, "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:" + n}
}

// The scripts of RReadWriteLock, reduced to the effects that other clients observe. KEYS: the lock, the prefix of its
// timeout keys, the channel. ARGV: the lease in ms, the field of the thread.
const (
	redissonRead = `
		local mode = redis.call('hget', KEYS[1], 'mode')
		if mode == false then
			redis.call('hset', KEYS[1], 'mode', 'read')
		elseif mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then
			return redis.call('pttl', KEYS[1])
		end
		local n = redis.call('hincrby', KEYS[1], ARGV[2], 1)
		redis.call('set', KEYS[2] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. n, 1, 'px', ARGV[1])
		redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1]))
		return nil`
	redissonWrite = `
		local mode = redis.call('hget', KEYS[1], 'mode')
		if mode == false then
			redis.call('hset', KEYS[1], 'mode', 'write')
			redis.call('hset', KEYS[1], ARGV[2] .. ':write', 1)
			redis.call('pexpire', KEYS[1], ARGV[1])
			return nil
		end
		return redis.call('pttl', KEYS[1])`
	RedissonReadUnlock = `
		if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
			return nil
		end
		local n = redis.call('hincrby', KEYS[1], ARGV[2], -1)
		if n == 0 then
			redis.call('hdel', KEYS[1], ARGV[2])
		end
		redis.call('del', KEYS[2] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. (n + 1))
		if redis.call('hlen', KEYS[1]) > 1 then
			local most = -3
			for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
				local count = tonumber(redis.call('hget', KEYS[1], field)) or 0
				for i = count, 1, -1 do most = math.max(most, redis.call('pttl', KEYS[2] .. ':' .. field .. ':rwlock_timeout:' .. i)) end;
			end
			if most > 0 then
				redis.call('pexpire', KEYS[1], most)
				return 0
			end
			if redis.call('hget', KEYS[1], 'mode') == 'write' then return 0 end;
		end
		redis.call('del', KEYS[1])
		redis.call('publish', KEYS[3], '0')
		return 1`
	RedissonWriteUnlock = `
		if redis.call('hdel', KEYS[1], ARGV[2] .. ':write') == 0 then
			return nil
		end
		if redis.call('hlen', KEYS[1]) == 1 then
			redis.call('del', KEYS[1])
			redis.call('publish', KEYS[3], '1')
		else
			redis.call('hset', KEYS[1], 'mode', 'read')
		end
		return 1`
)

// eval runs one of the scripts. It reports whether the answer was nil.
func (j *ReadWriteThread) eval(script, key string, lease time.Duration) (isNil bool, answer int64) {
	j.T.Helper()
	keys := []string{key, Tagged(key), ReadWriteChannelOf(key)}
	answer, err := j.Eval(context.Background(), script, keys, lease.Milliseconds(), j.Field).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		j.T.Fatal(err)
	}
	return err != nil, answer
}

// Reads attempts once to take the lock for reading.
func (j *ReadWriteThread) Reads(key string, lease time.Duration) bool {
	j.T.Helper()
	taken, _ := j.eval(redissonRead, key, lease)
	return taken
}

// Writes attempts once to take the lock for writing.
func (j *ReadWriteThread) Writes(key string, lease time.Duration) bool {
	j.T.Helper()
	taken, _ := j.eval(redissonWrite, key, lease)
	return taken
}

// Unlocks runs RedissonReadUnlock or RedissonWriteUnlock and compares the answer: 1 if it freed the lock, 0 otherwise.
func (j *ReadWriteThread) Unlocks(script, key string, want int64) {
	j.T.Helper()
	if isNil, answer := j.eval(script, key, time.Minute); isNil || answer != want {
		j.T.Errorf("Redisson's unlock: not held %v, answer %d, want %d", isNil, answer, want)
	}
}

// fairWait is the time in ms that a waiter of a fair lock adds to the deadlines of the waiters after it.
const fairWait = 300_000

// The scripts of a fair lock, reduced to the effects that other clients observe: an attempt that waits, the end of a
// wait, and a release. KEYS: the lock, its queue, its deadlines. ARGV: the lease in ms, the field of the thread, its
// wait in ms, the time in ms, the channel.
const (
	redissonDropLate = `
		while true do
			local head = redis.call('lindex', KEYS[2], 0)
			local score = head and redis.call('zscore', KEYS[3], head)
			if not score or tonumber(score) > tonumber(ARGV[4]) then break end
			redis.call('zrem', KEYS[3], head)
			redis.call('lpop', KEYS[2])
		end
	`
	redissonFairLock = redissonDropLate + `
		local head = redis.call('lindex', KEYS[2], 0)
		if redis.call('exists', KEYS[1]) == 0 and (not head or head == ARGV[2]) then
			redis.call('lpop', KEYS[2])
			redis.call('zrem', KEYS[3], ARGV[2])
			for _, waiter in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
				redis.call('zincrby', KEYS[3], -ARGV[3], waiter)
			end
			redis.call('hset', KEYS[1], ARGV[2], 1)
			redis.call('pexpire', KEYS[1], ARGV[1])
			return false
		end
		if redis.call('zscore', KEYS[3], ARGV[2]) then
			return math.max(0, redis.call('pttl', KEYS[1]))
		end
		local last = redis.call('lindex', KEYS[2], -1)
		local score = last and redis.call('zscore', KEYS[3], last)
		local ttl = score and score - ARGV[4] or redis.call('pttl', KEYS[1])
		if redis.call('zadd', KEYS[3], string.format('%.0f', ttl + ARGV[3] + ARGV[4]), ARGV[2]) == 1 then
			redis.call('rpush', KEYS[2], ARGV[2])
		end
		return ttl
	`
	redissonFairGiveUp = `
		local waiters = redis.call('lrange', KEYS[2], 0, -1)
		local behind = false
		for _, waiter in ipairs(waiters) do
			if behind then redis.call('zincrby', KEYS[3], -ARGV[3], waiter) end
			behind = behind or waiter == ARGV[2]
		end
		redis.call('zrem', KEYS[3], ARGV[2])
		redis.call('lrem', KEYS[2], 0, ARGV[2])
		return 1
	`
	redissonFairUnlock = redissonDropLate + `
		local head
		if redis.call('exists', KEYS[1]) == 1 then
			if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return false end
			redis.call('del', KEYS[1])
		end
		head = redis.call('lindex', KEYS[2], 0)
		if head then redis.call('publish', ARGV[5] .. ':' .. head, '0') end
		return 1
	`
)

// FairThread is a thread of a Redisson client that wants a fair lock.
type FairThread struct {
	Redis *redis.Client
	Key   string
	Field string
	Wait  int64 // added to its deadline, in ms
}

// NewFairThread returns a thread with a separate connection.
func (b *Redis) NewFairThread(key string) *FairThread {
	return &FairThread{
		Redis: b.Connect(), Key: key, Wait: fairWait,
		Field: fmt.Sprintf("7c1d6a52-2b0f-4a3e-8d33-%012x:%d", rand.Uint64()>>16, 50+rand.IntN(1000)),
	}
}

func (j *FairThread) eval(ctx context.Context, script string, lease time.Duration) (int64, error) {
	return j.Redis.Eval(ctx, script, []string{j.Key, FairQueue(j.Key), FairDeadlines(j.Key)},
		lease.Milliseconds(), j.Field, j.Wait, time.Now().UnixMilli(), ChannelOf(j.Key)).Int64()
}

// Try attempts once and joins the queue. If the lock is taken, it returns the time to sleep.
func (j *FairThread) Try(ctx context.Context) (taken bool, ttl time.Duration, err error) {
	ms, err := j.eval(ctx, redissonFairLock, 30*time.Second)
	if errors.Is(err, redis.Nil) {
		return true, 0, nil
	}
	return false, time.Duration(ms) * time.Millisecond, err
}

// Lock waits as Redisson does: for a message, or the end of the TTL that it saw.
func (j *FairThread) Lock(ctx context.Context) error {
	if taken, _, err := j.Try(ctx); taken || err != nil {
		return err
	}
	sub := j.Redis.Subscribe(ctx, ChannelOf(j.Key)+":"+j.Field)
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	for {
		taken, ttl, err := j.Try(ctx)
		if taken || err != nil {
			return err
		}
		if _, err = sub.ReceiveTimeout(ctx, max(ttl, time.Millisecond)); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Listen subscribes to the channel of the thread, so that other clients take the thread for a waiter.
func (j *FairThread) Listen(t *testing.T) (stop func()) {
	t.Helper()
	sub := j.Redis.Subscribe(context.Background(), ChannelOf(j.Key)+":"+j.Field)
	_, err := sub.Receive(context.Background())
	Must(t, err)
	return func() { _ = sub.Close() }
}

// Unlock releases the lock.
func (j *FairThread) Unlock(t *testing.T) {
	t.Helper()
	if _, err := j.eval(context.Background(), redissonFairUnlock, 0); err != nil {
		t.Errorf("unlock of %s: %v", j.Field, err)
	}
}

// GiveUp leaves the queue.
func (j *FairThread) GiveUp(t *testing.T) {
	t.Helper()
	_, err := j.eval(context.Background(), redissonFairGiveUp, 0)
	Must(t, err)
}

// Queued returns the fields in the queue of a fair lock.
func (b *Redis) Queued(key string) []string {
	return b.LRange(context.Background(), FairQueue(key), 0, -1).Val()
}

// QueueDeadline returns the deadline of a waiter of a fair lock.
func (b *Redis) QueueDeadline(key, field string) time.Time {
	b.T.Helper()
	ms, err := b.ZScore(context.Background(), FairDeadlines(key), field).Result()
	if err != nil {
		b.T.Fatalf("deadline of %s: %v", field, err)
	}
	return time.UnixMilli(int64(ms))
}

// FreeFair releases a fair lock as Redisson does, whichever client holds it.
func (b *Redis) FreeFair(key string) {
	b.T.Helper()
	Must(b.T, b.Del(context.Background(), key).Err())
	_, err := b.NewFairThread(key).eval(context.Background(), redissonFairUnlock, 0)
	if err != nil && !errors.Is(err, redis.Nil) { // nil: the head of the queue has taken the lock
		b.T.Error(err)
	}
}

// Permits is the semaphore "pool" in the form in which Redisson uses it.
type Permits struct {
	*Redis
}

// PermitsOf returns the semaphore "pool" of a server.
func PermitsOf(b *Redis) Permits { return Permits{b} }

// WantPermits compares how many permits are free and how many are taken.
func (b Permits) WantPermits(free, taken int) {
	b.T.Helper()
	got := b.Get(context.Background(), Pool).Val()
	if n := b.ZCard(context.Background(), PermitLeases).Val(); got != strconv.Itoa(free) || n != int64(taken) {
		b.T.Errorf("permits: %q free and %d taken, want %d and %d", got, n, free, taken)
	}
}

// RedissonAcquire tries to take a permit like RPermitExpirableSemaphore.tryAcquire. deadline is a time of the caller's
// clock.
func (b Permits) RedissonAcquire(id []byte, deadline string) (got any) {
	b.T.Helper()
	now := b.Time(context.Background()).Val().UnixMilli()
	got, err := b.Eval(context.Background(), `
local over = redis.call('zrangebyscore', KEYS[2], 0, ARGV[3], 'limit', 0, 1)
if #over > 0 then
  redis.call('zrem', KEYS[2], unpack(over))
  local v = redis.call('incrby', KEYS[1], #over)
  local _ = tonumber(v) > 0 and redis.call('publish', KEYS[3], v)
end
local v = redis.call('get', KEYS[1])
if v ~= false and tonumber(v) >= 1 then
  redis.call('decrby', KEYS[1], 1)
  redis.call('zadd', KEYS[2], ARGV[2], ARGV[1])
  return 'OK'
end
local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] ~= nil and first[2] ~= '922337203685477' then return ':' .. first[2] end
return false`, []string{Pool, PermitLeases, PermitChannel}, id, deadline, now).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		b.T.Fatal(err)
	}
	return got
}

// RedissonRelease releases a permit. It returns 0 if the permit was not taken or its lease had expired, and 1
// otherwise.
func (b Permits) RedissonRelease(id []byte) int64 {
	b.T.Helper()
	now := b.Time(context.Background()).Val().UnixMilli()
	n, err := b.Eval(context.Background(), `
local score = redis.call('zscore', KEYS[2], ARGV[1])
if redis.call('zrem', KEYS[2], ARGV[1]) == 1 then
  local v = redis.call('incrby', KEYS[1], 1)
  redis.call('publish', KEYS[3], v)
  return tonumber(score) <= tonumber(ARGV[2]) and 0 or 1
end
return 0`, []string{Pool, PermitLeases, PermitChannel}, id, now).Int64()
	Must(b.T, err)
	return n
}
