package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// javaLike waits like Redisson. Each message wakes one of its threads, which tries when it runs
// (1.5 ms later) and then sleeps until the next message or the end of the lease. Messages without
// a waiting thread are kept. A thread that arrives while others of the process wait also needs a
// message: otherwise a returning thread would get the lock before a woken one.
func javaLike() contender { return contender{name: "Redisson, by hand", open: openRedisson} }

type redisson struct {
	rdb  *redis.Client
	next atomic.Int64 // thread ids
	sent sync.WaitGroup

	mu      sync.Mutex
	entries map[string]*redissonEntry
}

const (
	redissonID      = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11"
	redissonWakes   = 1500 * time.Microsecond
	redissonLease   = 30 * time.Second // the lease of the watchdog; no hold here takes as long
	redissonLatches = 16 * time.Second
)

// redissonLock returns nil if the lock was free, otherwise the remaining lease.
var redissonLock = redis.NewScript(`
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`)

// redissonUnlock returns nil if the lock was not held, otherwise whether it is free now. The latch is
// for repeated requests.
var redissonUnlock = redis.NewScript(`
local before = redis.call('get', KEYS[3])
if before then return tonumber(before) end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local free = 0
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
else
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[2], 0)
  free = 1
end
redis.call('set', KEYS[3], free, 'px', ARGV[3])
return free`)

func openRedisson(addr string, _ int) (Locker, error) {
	return &redisson{rdb: newRedis(addr), entries: map[string]*redissonEntry{}}, nil
}

func (r *redisson) Lock(ctx context.Context, key string) (Unlock, error) {
	field := redissonID + ":" + strconv.FormatInt(r.next.Add(1), 10)
	if err := r.take(ctx, key, field); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return r.unlock(ctx, key, field) }, nil
}

func (r *redisson) take(ctx context.Context, key, field string) error {
	if !r.waitedFor(key) {
		if free, _, err := r.try(ctx, key, field); free || err != nil {
			return err
		}
	}
	return r.wait(ctx, key, field)
}

func (r *redisson) try(ctx context.Context, key, field string) (free bool, ttl time.Duration, err error) {
	left, err := redissonLock.Run(ctx, r.rdb, []string{key}, redissonLease.Milliseconds(), field).Int64()
	if errors.Is(err, redis.Nil) {
		return true, 0, nil
	}
	return false, time.Duration(left) * time.Millisecond, err
}

func (r *redisson) wait(ctx context.Context, key, field string) error {
	e, others := r.enter(ctx, key)
	defer r.leave(key, e)
	if err := e.confirmed(ctx, redissonChannel(key)); err != nil {
		return err
	}
	for ; ; others = false {
		free, ttl, err := false, redissonLease, error(nil)
		if !others {
			free, ttl, err = r.try(ctx, key, field)
		}
		if free || err != nil {
			return err
		}
		timeout := time.NewTimer(ttl)
		select {
		case <-e.permits:
			hold(redissonWakes)
		case <-timeout.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timeout.Stop()
		if err != nil {
			return err
		}
	}
}

func (r *redisson) unlock(ctx context.Context, key, field string) error {
	latch := "redisson_unlock_latch:{" + key + "}:" + field
	free, err := redissonUnlock.Run(ctx, r.rdb, []string{key, redissonChannel(key), latch},
		redissonLease.Milliseconds(), field, redissonLatches.Milliseconds()).Int64()
	if err == nil && free != 1 {
		err = errors.New("redisson: still held")
	}
	r.sent.Go(func() { r.rdb.Del(ctx, latch) }) // the answer is ignored
	return err
}

func redissonChannel(key string) string { return "redisson_lock__channel:{" + key + "}" }

// redissonEntry is the subscription that all waiting threads of a lock share.
type redissonEntry struct {
	threads int // guarded by redisson.mu
	pubsub  *redis.PubSub
	ready   sync.Once
	failed  error
	permits chan struct{}
}

// waitedFor reports whether threads of this process wait for key.
func (r *redisson) waitedFor(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[key] != nil
}

// enter adds a waiting thread. It reports whether other threads are already waiting.
func (r *redisson) enter(ctx context.Context, key string) (e *redissonEntry, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e = r.entries[key]
	if others = e != nil; !others {
		e = &redissonEntry{pubsub: r.rdb.Subscribe(ctx), permits: make(chan struct{}, 1<<20)}
		r.entries[key] = e
	}
	e.threads++
	return e, others
}

// leave removes a thread. The last one closes the subscription.
func (r *redisson) leave(key string, e *redissonEntry) {
	r.mu.Lock()
	e.threads--
	last := e.threads == 0
	if last {
		delete(r.entries, key)
	}
	r.mu.Unlock()
	if last {
		_ = e.pubsub.Close()
	}
}

// confirmed waits until Redis confirms the subscription.
func (e *redissonEntry) confirmed(ctx context.Context, channel string) error {
	e.ready.Do(func() {
		e.failed = e.pubsub.Subscribe(ctx, channel)
		if e.failed == nil {
			_, e.failed = e.pubsub.Receive(ctx)
		}
		if e.failed == nil {
			go e.listen(e.pubsub.Channel(redis.WithChannelSize(1 << 10)))
		}
	})
	return e.failed
}

// listen receives messages until the subscription is closed.
func (e *redissonEntry) listen(messages <-chan *redis.Message) {
	for range messages {
		e.permits <- struct{}{}
	}
}

func (r *redisson) Close() error {
	r.sent.Wait()
	return r.rdb.Close()
}
