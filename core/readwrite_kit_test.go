package core_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// thread is one of a Redisson client that uses its read-write lock, by hand.
type thread struct {
	*bed

	field string
}

func (b *bed) thread(n string) *thread {
	return &thread{b, "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:" + n}
}

// inSlotOf is the name of what belongs to a lock.
func inSlotOf(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return "{" + key + "}"
}

func rwChannelOf(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_rwlock:" + key
	}
	return "redisson_rwlock:{" + key + "}"
}

// The scripts of RReadWriteLock, as far as others see them. KEYS: the lock, what its timeout keys
// begin with, the channel. ARGV: the lease in ms, the thread's field.
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
	redissonReadUnlock = `
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
	redissonWriteUnlock = `
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
func (j *thread) eval(script, key string, lease time.Duration) (isNil bool, answer int64) {
	j.t.Helper()
	keys := []string{key, inSlotOf(key), rwChannelOf(key)}
	answer, err := j.Eval(context.Background(), script, keys, lease.Milliseconds(), j.field).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		j.t.Fatal(err)
	}
	return err != nil, answer
}

// reads and writes try to take the lock.
func (j *thread) reads(key string, lease time.Duration) bool {
	j.t.Helper()
	taken, _ := j.eval(redissonRead, key, lease)
	return taken
}

func (j *thread) writes(key string, lease time.Duration) bool {
	j.t.Helper()
	taken, _ := j.eval(redissonWrite, key, lease)
	return taken
}

// unlocks wants the answer of an unlock: 1 when that has freed the lock, else 0.
func (j *thread) unlocks(script, key string, want int64) {
	j.t.Helper()
	if stranger, answer := j.eval(script, key, time.Minute); stranger || answer != want {
		j.t.Errorf("Redisson's unlock: not held %v, answer %d, want %d", stranger, answer, want)
	}
}

// rwListeners waits until somebody listens for the messages of a read-write lock.
func (b *bed) rwListeners(key string) {
	b.t.Helper()
	channel := rwChannelOf(key)
	eventually(b.t, "a subscriber", func() bool { return b.PubSubNumSub(context.Background(), channel).Val()[channel] >= 1 })
}

// wantNothing wants no key to be left but these.
func (b *bed) wantNothing(but ...string) {
	b.t.Helper()
	keys := b.Keys(context.Background(), "*").Val()
	keys = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(but, key) })
	if len(keys) != 0 {
		b.t.Errorf("left behind: %q", keys)
	}
}

// wantInside wants these holders of a lock with readers inside of its writer, and maybe a note of when the
// writer's own lease is over.
func (b *bed) wantInside(key string, want map[string]string) {
	b.t.Helper()
	got := b.HGetAll(context.Background(), key).Val()
	delete(got, "interlock_until")
	if !maps.Equal(got, want) {
		b.t.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

// timeoutOf is the n-th timeout key of a reader.
func timeoutOf(key, field, n string) string {
	return inSlotOf(key) + ":" + field + ":rwlock_timeout:" + n
}

// got waits for an Acquire that must succeed.
func got(t *testing.T, pending <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-pending:
		must(t, o.err)
		return o
	case <-time.After(hangs):
		t.Fatal("never acquired")
		return outcome{}
	}
}
