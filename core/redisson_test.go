package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// redissonWaits starts a Lock of key and sends the time at which the thread gets it.
func redissonWaits(t *testing.T, j *locktest.Redisson, key string) <-chan time.Time {
	t.Helper()
	got, ended := make(chan time.Time, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if j.Lock(key, time.Hour) {
			got <- time.Now()
		}
	}()
	t.Cleanup(func() { <-ended })
	return got
}

// shortenings are the ways to shorten the lease of "k" after a Redisson waiter has seen its TTL. Each starts with a
// long lease and ends with a lease of d.
var shortenings = map[string]func(t *testing.T, b *locktest.Redis, locks *core.Client, asleep func(), d time.Duration){
	"Refresh": func(t *testing.T, _ *locktest.Redis, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		asleep()
		locktest.Must(t, hold.Refresh(t.Context(), d))
	},
	"Leave": func(t *testing.T, _ *locktest.Redis, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		asleep()
		locktest.Must(t, hold.Leave(t.Context(), d))
	},
	"Leave of a watchdog's": func(t *testing.T, _ *locktest.Redis, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		asleep()
		locktest.Must(t, hold.Leave(t.Context(), d))
	},
	"hand-off": func(t *testing.T, _ *locktest.Redis, locks *core.Client, asleep func(), d time.Duration) {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(d))
		locktest.AwaitWaiters(t, locks, 1)
		asleep()
		locktest.MustRelease(t, hold)
		locktest.Must(t, (<-next).Err)
	},
}

// Redisson sleeps until the end of the TTL that it saw. An operation that makes the lease end earlier wakes it. In a
// bubble the time is exact.
func TestWire_RedissonWaiterSeesAShorterLease(t *testing.T) {
	t.Parallel()
	for name, shorten := range shortenings {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			const shorter = time.Second
			locks := b.Locks()
			core.LetRunsLast(locks)
			var got <-chan time.Time
			shorten(t, b, locks, func() {
				got = redissonWaits(t, b.NewRedisson(t, locktest.RedissonField), "k")
				locktest.Pass(time.Millisecond)
			}, shorter)
			end := time.Now().Add(shorter)
			if name == "hand-off" {
				end = end.Add(reserve)
			}
			if late := (<-got).Sub(end); late > 5*time.Millisecond {
				t.Errorf("had the lock %s after its end, want at most 5ms", late)
			}
		})
	}
}

func TestWire_RedissonWaiterSeesAShorterLeaseOnAServer(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	for name, shorten := range shortenings {
		locks := b.Locks(locktest.Patient)
		core.LetRunsLast(locks)
		var got <-chan time.Time
		shorten(t, b, locks, func() {
			java := b.NewRedisson(t, locktest.RedissonField)
			got = redissonWaits(t, java, "k")
			java.AwaitSleep()
		}, 200*time.Millisecond)
		select {
		case <-got:
		case <-time.After(locktest.Measured(20 * time.Second)): // the TTL that it saw is 30 s or more
			t.Fatalf("%s: the waiter sleeps on the TTL that it saw", name)
		}
		b.Del(t.Context(), "k")
	}
}

func TestWire_OwnMessageOfAHandOffCostsNothing(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		core.LetRunsLast(locks)
		b.Warm(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		var next []<-chan locktest.Outcome
		for i := range 5 {
			next = append(next, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(50*time.Minute-time.Duration(i)*time.Minute)))
			locktest.AwaitWaiters(t, locks, i+1)
		}
		locktest.Pass(3 * time.Second)
		b.AwaitListeners("k", 1)
		for i, got := range next {
			before := sent.Hits()
			locktest.MustRelease(t, hold)
			o := locktest.Got(t, got)
			hold = o.Hold
			locktest.Pass(time.Millisecond)
			if n := sent.Hits() - before; n > 2 { // a poll may happen in this millisecond
				t.Errorf("hand-off %d cost %d scripts, want at most 2", i, n)
			}
		}
		locktest.MustRelease(t, hold)
	})
}
