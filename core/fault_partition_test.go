package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/redis/go-redis/v9"
)

// TestFault_BlackHole_HoldersNeverOverlap swallows everything between a holder and
// Redis at different moments of the renewal. The holder, who asks its context
// before every step, must have made its last step before anybody else has the lock.
func TestFault_BlackHole_HoldersNeverOverlap(t *testing.T) {
	t.Parallel()
	const watchdog = 600 * time.Millisecond
	server := redisserver.Start(t)
	for i := range 20 {
		locktest.Parallel(t, fmt.Sprint(i), func(t *testing.T) {
			proxy := faultproxy.New(t, server.Addr())
			rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
			defer rdb.Close()
			cut, err := core.New(rdb, core.WithWatchdog(watchdog), locktest.Patient)
			locktest.Must(t, err)
			defer cut.Close(t.Context())
			other := locktest.MustNew(t, server.Client(), locktest.Patient)
			defer locktest.MustClose(t, other)

			lock := fmt.Sprintf("hole:%d", i)
			ctx, hold, err := cut.Lock(lock).Acquire(t.Context())
			locktest.Must(t, err)
			ended := make(chan time.Time, 1)
			go func() { ended <- lastStep(ctx) }()
			next := make(chan time.Time, 1)
			var waiter sync.WaitGroup
			defer waiter.Wait()
			waiter.Go(func() {
				_, taken, err := other.Lock(lock).Acquire(context.Background(), core.WaitTime(20*time.Second))
				next <- time.Now()
				if err != nil {
					t.Errorf("the other: %v", err)
					return
				}
				locktest.WantOK(t, taken.Release(context.Background()))
			})
			time.Sleep(time.Duration(i) * watchdog / 20) // the moment of the fault, spread over more than a renewal period
			proxy.BlackHole(true)
			end, start := <-ended, <-next
			if overlap := end.Sub(start); overlap > 0 {
				t.Errorf("the holders overlapped by %s", overlap)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
				t.Errorf("cause of the context: %v", cause)
			}
			if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
				t.Errorf("release after the loss: %v", err)
			}
		})
	}
}

// lastStep works under a lock until its context says that it must not any more, and
// gives the time of the last step that was allowed.
func lastStep(ctx context.Context) (last time.Time) {
	for {
		now := time.Now()
		if ctx.Err() != nil {
			return last
		}
		last = now
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// TestFault_BlackHole_SubscriptionIsNoticed swallows what comes in on the subscription
// connection of a waiter, and on no other, and nobody closes it. The waiter finds a
// free lock by its poll; within seconds it has another subscription, which wakes it.
func TestFault_BlackHole_SubscriptionIsNoticed(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks, holder := r.Behind(locktest.Patient), r.Beside()
	silent := r.Proxy.HoldReply(faultproxy.Once(faultproxy.Command("SUBSCRIBE"))) // and all behind it
	again := r.Proxy.Watch(faultproxy.Command("SUBSCRIBE"))

	handOver := func(asleep func()) time.Duration {
		_, hold := locktest.MustAcquire(t, t.Context(), holder.Lock("sub"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("sub"), core.WaitTime(20*time.Second))
		locktest.AwaitWaiters(t, locks, 1)
		asleep()
		free := time.Now()
		locktest.MustRelease(t, hold)
		o := locktest.Got(r.T, got)
		took := time.Since(free)
		locktest.MustRelease(t, o.Hold)
		return took
	}
	var asked time.Time
	locktest.WantAtMost(t, "without a subscription, waking", handOver(func() { <-silent.Hit(); asked = time.Now() }), time.Second)
	best := handOver(func() {
		locktest.Eventually(t, "another subscription", func() bool { return again.Hits() > 0 })
		locktest.WantAtMost(t, "asking for another subscription", time.Since(asked), 4*time.Second)
	})
	for range 4 {
		best = min(best, handOver(func() {}))
	}
	if best > locktest.Measured(300*time.Millisecond) {
		t.Errorf("with another subscription, woken after %s", best)
	}
}
