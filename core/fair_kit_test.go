package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// What Redisson keeps of a fair lock beside its hash.
func fairQueue(key string) string     { return "redisson_lock_queue:" + tagged(key) }
func fairDeadlines(key string) string { return "redisson_lock_timeout:" + tagged(key) }

func tagged(key string) string { return strings.TrimPrefix(channelOf(key), "redisson_lock__channel:") }

// fairWait is what one who waits adds to the deadlines behind him.
const fairWait = 300_000

// redissonFair are the scripts of a Redisson fair lock, by what is observed of it: an attempt
// that waits, the end of one, and a release.
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

// fairThread is a thread of Redisson that wants a fair lock.
type fairThread struct {
	rdb   *redis.Client
	key   string
	field string
	wait  int64 // of its deadline, in ms
}

var fairThreads atomic.Int64

func (b *bed) fairThread(key string) *fairThread {
	return &fairThread{
		rdb: b.connect(), key: key, wait: fairWait,
		field: fmt.Sprintf("7c1d6a52-2b0f-4a3e-8d33-%012x:%d", rand.Uint64()>>16, 50+fairThreads.Add(1)),
	}
}

func (j *fairThread) eval(ctx context.Context, script string, lease time.Duration) (int64, error) {
	return j.rdb.Eval(ctx, script, []string{j.key, fairQueue(j.key), fairDeadlines(j.key)},
		lease.Milliseconds(), j.field, j.wait, time.Now().UnixMilli(), channelOf(j.key)).Int64()
}

// try is an attempt that waits: it has the lock, or the time to sleep.
func (j *fairThread) try(ctx context.Context) (taken bool, ttl time.Duration, err error) {
	ms, err := j.eval(ctx, redissonFairLock, 30*time.Second)
	if errors.Is(err, redis.Nil) {
		return true, 0, nil
	}
	return false, time.Duration(ms) * time.Millisecond, err
}

// lock waits as Redisson does: for a message, or the TTL that it has seen.
func (j *fairThread) lock(ctx context.Context) error {
	if taken, _, err := j.try(ctx); taken || err != nil {
		return err
	}
	sub := j.rdb.Subscribe(ctx, channelOf(j.key)+":"+j.field)
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	for {
		taken, ttl, err := j.try(ctx)
		if taken || err != nil {
			return err
		}
		if _, err = sub.ReceiveTimeout(ctx, max(ttl, time.Millisecond)); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (j *fairThread) unlock(t *testing.T) {
	t.Helper()
	if _, err := j.eval(context.Background(), redissonFairUnlock, 0); err != nil {
		t.Errorf("unlock of %s: %v", j.field, err)
	}
}

func (j *fairThread) giveUp(t *testing.T) {
	t.Helper()
	_, err := j.eval(context.Background(), redissonFairGiveUp, 0)
	must(t, err)
}

// queued are the fields that stand in the queue of key.
func (b *bed) queued(key string) []string {
	return b.LRange(context.Background(), fairQueue(key), 0, -1).Val()
}

// wantQueue wants these fields to be queued, and each to have a deadline.
func (b *bed) wantQueue(key string, want ...string) {
	b.t.Helper()
	if got := b.queued(key); !slices.Equal(got, want) {
		b.t.Errorf("queue: got %v, want %v", got, want)
	}
	if n := b.ZCard(context.Background(), fairDeadlines(key)).Val(); n != int64(len(want)) {
		b.t.Errorf("%d deadlines, want %d", n, len(want))
	}
}

// wantNoQueue wants nothing to be left of a queue, within a second.
func (b *bed) wantNoQueue(key string) {
	b.t.Helper()
	within(b.t, "nobody queued", func() bool {
		return b.Exists(context.Background(), key, fairQueue(key), fairDeadlines(key)).Val() == 0
	})
}

// deadline is that of a waiter.
func (b *bed) deadline(key, field string) time.Time {
	b.t.Helper()
	ms, err := b.ZScore(context.Background(), fairDeadlines(key), field).Result()
	if err != nil {
		b.t.Fatalf("deadline of %s: %v", field, err)
	}
	return time.UnixMilli(int64(ms))
}

// joins starts an Acquire of a fair lock that has to wait, and gives its field in the queue.
func (b *bed) joins(ctx context.Context, locks *core.Client, key string, opts ...core.AcquireOption) (string, <-chan outcome) {
	b.t.Helper()
	before := len(b.queued(key))
	got := acquiring(ctx, locks.FairLock(key), opts...)
	eventually(b.t, "queued", func() bool { return len(b.queued(key)) > before })
	return b.queued(key)[before], got
}

// freeFair releases a fair lock by hand as Redisson does, whoever holds it.
func (b *bed) freeFair(key string) {
	b.t.Helper()
	must(b.t, b.Del(context.Background(), key).Err())
	_, err := b.fairThread(key).eval(context.Background(), redissonFairUnlock, 0)
	if err != nil && !errors.Is(err, redis.Nil) { // nil: the head has looked, and has it
		b.t.Error(err)
	}
}

func redisZ(member string, score time.Time) redis.Z {
	return redis.Z{Member: member, Score: float64(score.UnixMilli())}
}
