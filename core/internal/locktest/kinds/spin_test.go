package kinds_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A spin lock has the layout of a plain lock in Redis, publishes nothing, and subscribes to nothing.
func TestSpin_NoMessages(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, "redisson_lock__channel:{order:42}")
		mine, theirs := b.Locks(), b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), mine.SpinLock("order:42"))
		b.WantCount(hold, "1")
		got := make(chan *core.Hold)
		go func() {
			_, hold, err := theirs.SpinLock("order:42").Acquire(context.Background())
			locktest.WantOK(t, err)
			got <- hold
		}()
		locktest.AwaitWaiters(t, theirs, 1)
		if n := b.PubSubNumSub(t.Context(), "redisson_lock__channel:{order:42}").Val(); n["redisson_lock__channel:{order:42}"] != 1 {
			t.Errorf("subscribers: got %v, want the subscriber of this test", n)
		}
		locktest.Must(t, hold.Refresh(t.Context(), 10*time.Second)) // a lower TTL sends no message either
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, <-got)
		locktest.Must(t, b.Publish(t.Context(), "redisson_lock__channel:{order:42}", "end").Err())
		sub.Want("end")
	})
}

// A spinning waiter attempts 6 times in the first 50 ms, and then every 40 to 50 ms. The callers of one client spin
// as one.
func TestSpin_BackOff(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().SpinLock("k"))
		locks, attempts := b.Counted()
		b.Warm(locks)
		before := attempts.Hits()
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				_, _, err := locks.SpinLock("k").Acquire(context.Background(), core.WaitTime(2*time.Second))
				locktest.WantErr(t, err, core.ErrNotAcquired)
			})
		}
		callers.Wait()
		if n := attempts.Hits() - before; n < 40 || n > 70 {
			t.Errorf("attempts in two seconds: got %d, want about 50", n)
		}
		locktest.MustRelease(t, hold)
	})
}

// A spinning waiter gets its turn beside another process that keeps the lock busy. The waiter starts after that process
// has had turns, because chance would decide if both started at the same instant. Their connections have different
// latencies, so that their commands never run at the same instant.
func TestSpin_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, near := faultproxy.Far(t, b.Client, 70*time.Microsecond)
		_, far := faultproxy.Far(t, b.Client, 110*time.Microsecond)
		busy, lone := locktest.NewClient(t, near), locktest.NewClient(t, far)
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		var served atomic.Int64
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					err := busy.SpinLock("k").Do(ctx, func(context.Context) error {
						served.Add(1)
						time.Sleep(5 * time.Millisecond) // the work, in the time of the bubble
						return nil
					})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			locktest.Pass(100 * time.Millisecond) // longer than the time for which the process leaves the lock free for others
			start, before := time.Now(), served.Load()
			_, hold := locktest.MustAcquire(t, t.Context(), lone.SpinLock("k"), core.WaitTime(4*time.Second))
			t.Logf("a turn after %s and %d of theirs", time.Since(start), served.Load()-before)
			locktest.MustRelease(t, hold)
		}
		stop()
		callers.Wait()
	})
}
