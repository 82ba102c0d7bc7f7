package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// javaHolder is a holder field of a Redisson client.
const javaHolder = "5a1f0a0e-9f0b-4a3e-8d33-3f5a1be0b1de:71"

// redisson is a Redisson client that is written by hand: its locks wait as RLock does
// on the wire, and know nothing of this library.
type redisson struct {
	t     *testing.T
	rdb   *redis.Client
	field string

	attempts atomic.Int32
}

func (b *bed) redisson(t *testing.T, field string) *redisson {
	t.Helper()
	return &redisson{t: t, rdb: b.connect(), field: field}
}

// asleep waits until a waiter has made the second attempt, after which it sleeps.
func (j *redisson) asleep() {
	j.t.Helper()
	eventually(j.t, "the waiter to sleep", func() bool { return j.attempts.Load() >= 2 })
}

// attempt is RLock.tryLockInner: 0 when the lock is acquired, else the TTL in the way.
func (j *redisson) attempt(key string) (taken bool, ttl time.Duration) {
	j.t.Helper()
	defer j.attempts.Add(1)
	ms, err := j.rdb.Eval(j.t.Context(), redissonTryLock, []string{key}, 30_000, j.field).Int64()
	if err != nil && !errors.Is(err, redis.Nil) && j.t.Context().Err() == nil {
		j.t.Error(err)
	}
	return errors.Is(err, redis.Nil), time.Duration(ms) * time.Millisecond
}

// lock waits as RLock.tryLock(wait): attempt, subscribe, attempt, and then for a message
// or the end of the TTL that it saw, whichever is first. It has no poll.
func (j *redisson) lock(key string, wait time.Duration) bool {
	j.t.Helper()
	if taken, _ := j.attempt(key); taken {
		return true
	}
	end := time.Now().Add(wait)
	sub := j.rdb.Subscribe(j.t.Context(), channelOf(key))
	defer sub.Close()
	if _, err := sub.Receive(j.t.Context()); err != nil {
		return false // the test is over
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

// unlock is RLock.unlock of a lock that is held once.
func (j *redisson) unlock(key string) {
	j.t.Helper()
	const script = `
		if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
		redis.call('del', KEYS[1])
		redis.call('publish', KEYS[2], '0')
		return 1`
	if err := j.rdb.Eval(context.Background(), script, []string{key, channelOf(key)}, j.field).Err(); err != nil {
		j.t.Errorf("unlock %s: %v", key, err)
	}
}

// waiting starts a lock of k, and gives the moment at which it is had.
func (j *redisson) waiting(key string) <-chan time.Time {
	got, ended := make(chan time.Time, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if j.lock(key, time.Hour) {
			got <- time.Now()
		}
	}()
	j.t.Cleanup(func() { <-ended })
	return got
}

// reserve is by how much longer than a fixed lease a hand-off asks Redis for.
const reserve = 100 * time.Millisecond

// shortenings are the ways to make the lease of "k" end earlier than a Redisson waiter
// has seen it end: a long lease is there, and after them one of d.
var shortenings = map[string]func(t *testing.T, b *bed, locks *core.Client, asleep func(), d time.Duration){
	"Refresh": func(t *testing.T, _ *bed, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		asleep()
		must(t, hold.Refresh(t.Context(), d))
	},
	"Leave": func(t *testing.T, _ *bed, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		asleep()
		must(t, hold.Leave(t.Context(), d))
	},
	"Leave of a watchdog's": func(t *testing.T, _ *bed, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		asleep()
		must(t, hold.Leave(t.Context(), d))
	},
	"hand-off": func(t *testing.T, _ *bed, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		next := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(d))
		waiters(t, locks, 1)
		asleep()
		released(t, hold)
		must(t, (<-next).err)
	},
}

// Redisson sleeps until the end of the TTL that it saw. Whatever makes a lease end
// earlier wakes it, so that it looks again. In a bubble the moment is exact.
func TestWire_RedissonWaiterSeesAShorterLease(t *testing.T) {
	t.Parallel()
	for name, shorten := range shortenings {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			const shorter = time.Second
			locks := b.locks()
			core.LetRunsLast(locks)
			var got <-chan time.Time
			shorten(t, b, locks, func() {
				got = b.redisson(t, javaHolder).waiting("k")
				pass(time.Millisecond)
			}, shorter)
			end := time.Now().Add(shorter)
			if name == "hand-off" {
				end = end.Add(reserve)
			}
			if late := (<-got).Sub(end); late > 5*time.Millisecond {
				t.Errorf("had the lock %s after its end", late)
			}
		})
	}
}

func TestWire_RedissonWaiterSeesAShorterLeaseOnAServer(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	for name, shorten := range shortenings {
		locks := b.locks(patient)
		core.LetRunsLast(locks)
		var got <-chan time.Time
		shorten(t, b, locks, func() {
			java := b.redisson(t, javaHolder)
			got = java.waiting("k")
			java.asleep()
		}, 200*time.Millisecond)
		select {
		case <-got:
		case <-time.After(measured(20 * time.Second)): // the TTL that it saw is 30 s or more
			t.Fatalf("%s: the waiter sleeps on the TTL that it saw", name)
		}
		b.Del(t.Context(), "k")
	}
}

// The message of a shorter lease comes back to the process that sent it, which has
// nothing to learn from it. Its own waiters get the lock in time all the same.
func TestWire_OwnMessageOfAShorterLeaseCostsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		b.warm(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		got := acquiring(t.Context(), locks.Lock("k"))
		waiters(t, locks, 1)
		pass(3 * time.Second)
		b.listeners("k", 1)
		for lease := 20 * time.Minute; lease > 10*time.Minute; lease -= time.Minute {
			before := sent.Hits()
			must(t, hold.Refresh(t.Context(), lease))
			pass(time.Millisecond)
			if n := sent.Hits() - before; n > 2 { // a poll may fall into this millisecond
				t.Errorf("Refresh(%s) cost %d scripts", lease, n)
			}
		}
		must(t, hold.Refresh(t.Context(), 2*time.Second))
		end := time.Now().Add(2 * time.Second)
		o := <-got
		must(t, o.err)
		wantSoon(t, "had the lock %s after its end", end, 5*time.Millisecond)
		released(t, o.hold)
	})
}

func TestWire_OwnMessageOfAHandOffCostsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		core.LetRunsLast(locks)
		b.warm(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		var next []<-chan outcome
		for i := range 5 {
			next = append(next, acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(50*time.Minute-time.Duration(i)*time.Minute)))
			waiters(t, locks, i+1)
		}
		pass(3 * time.Second)
		b.listeners("k", 1)
		for i, got := range next {
			before := sent.Hits()
			released(t, hold)
			o := <-got
			must(t, o.err)
			hold = o.hold
			pass(time.Millisecond)
			if n := sent.Hits() - before; n > 2 { // a poll may fall into this millisecond
				t.Errorf("hand-off %d cost %d scripts", i, n)
			}
		}
		released(t, hold)
	})
}
