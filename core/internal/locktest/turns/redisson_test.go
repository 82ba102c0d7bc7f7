package turns_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The message about a shorter lease also reaches the process that sent it, where it costs no command. The waiters of
// this process get the lock in time.
func TestWire_OwnMessageOfAShorterLeaseCostsNothing(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Pass(3 * time.Second)
		b.AwaitListeners("k", 1)
		for lease := 20 * time.Minute; lease > 10*time.Minute; lease -= time.Minute {
			before := sent.Hits()
			locktest.Must(t, hold.Refresh(t.Context(), lease))
			locktest.Pass(time.Millisecond)
			if n := sent.Hits() - before; n > 2 { // a poll may happen in this millisecond
				t.Errorf("Refresh(%s) cost %d scripts, want at most 2", lease, n)
			}
		}
		locktest.Must(t, hold.Refresh(t.Context(), 2*time.Second))
		end := time.Now().Add(2 * time.Second)
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "had the lock %s after its end", end, 5*time.Millisecond)
		locktest.MustRelease(t, o.Hold)
	})
}

// The bound is far below the poll interval, so a message has woken the waiter.
func TestWire_ForeignUnlockWakesAWaiter(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		const rounds = 5
		best := time.Hour
		for range rounds {
			b.Take("k", locktest.Stranger, time.Minute)
			got, done := make(chan time.Time, 1), make(chan error, 1)
			go func() {
				done <- locks.Lock("k").Do(t.Context(), func(context.Context) error {
					got <- time.Now()
					return nil
				})
			}()
			locktest.AwaitWaiters(t, locks, 1)
			b.AwaitListeners("k", 1)
			freed := time.Now()
			b.Free("k")
			best = min(best, (<-got).Sub(freed))
			locktest.Must(t, <-done)
		}
		if best > locktest.Measured(50*time.Millisecond) {
			t.Errorf("woken %s after the unlock, want 50ms at most", best)
		}
	})
}

// A waiter that uses Redisson's protocol (subscribe, attempt, wait for a message) competes with 32 callers of one
// client. Only turns that it had to wait for count, and only half of them, because a loaded machine may stop any
// process for longer. TestTurns_RedissonHasItsShare bounds a single wait, in a bubble.
func TestWire_RedissonWaiterBesideLocalOnes(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	ctx, stop := context.WithCancel(t.Context())
	done := locktest.KeepBusy(ctx, locks, "k", 32)
	locktest.AwaitWaiters(t, locks, 31)

	waits := make([]time.Duration, 0, 20)
	for len(waits) < cap(waits) {
		if waited := redissonTurn(t, b, "k"); waited > 0 {
			waits = append(waits, waited)
		}
	}
	stop()
	<-done
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > locktest.Measured(50*time.Millisecond) {
		t.Errorf("half of the waits took longer than %s: %v", median, waits)
	}
}

// redissonTurn takes and frees the lock once as Redisson's RLock does. It returns the wait, 0 if the first attempt
// took the lock.
func redissonTurn(t *testing.T, b *locktest.Redis, key string) time.Duration {
	t.Helper()
	start := time.Now()
	if redissonTry(t, b, key) {
		b.Free(key)
		return 0
	}
	sub := b.SubscribeTo(t, locktest.ChannelOf(key))
	defer sub.Close()
	for !redissonTry(t, b, key) {
		if _, err := sub.ReceiveTimeout(t.Context(), locktest.HangTimeout); err != nil {
			t.Fatalf("no message: %v", err)
		}
	}
	waited := time.Since(start)
	b.Free(key)
	return waited
}

// redissonTry makes one attempt of RLock and reports whether it took the lock.
func redissonTry(t *testing.T, b *locktest.Redis, key string) bool {
	t.Helper()
	err := b.Eval(t.Context(), locktest.RedissonTryLock, []string{key}, 30_000, locktest.Stranger).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return errors.Is(err, redis.Nil)
}
