package outages_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestSilence_HoldersNeverOverlap swallows all traffic between a holder and Redis at different times of the renewal.
// The holder checks its context before every step. Its last step comes before another client has the lock.
func TestSilence_HoldersNeverOverlap(t *testing.T) {
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

// lastStep works under a lock until its context ends, and returns the time of the last step.
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

// TestSilence_OfASubscriptionIsNoticed swallows what arrives on the subscription connection of a waiter, which stays
// open. The waiter finds a free lock by its poll. Within seconds it has another subscription, which wakes it.
func TestSilence_OfASubscriptionIsNoticed(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks, holder := r.Behind(locktest.Patient), r.Beside()
	silent := r.Proxy.HoldReply(faultproxy.Once(faultproxy.Command("SUBSCRIBE"))) // and all replies behind it
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

// sleeperTimeout returns the backend timeout of the process that the test stops.
func sleeperTimeout() time.Duration {
	if locktest.IsQuiet() {
		return time.Second
	}
	return 3 * time.Second
}

// TestSilence_SleepOfTheProcessIsNotAnOutage stops a process for longer than the backend timeout during its calls.
// When it goes on, Redis has answered long before, and is not reported as down.
func TestSilence_SleepOfTheProcessIsNotAnOutage(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	sleeper := locktest.StartChild(t, "sleeper", server.Addr())
	if got := sleeper.Hear(); got != "warm" {
		t.Fatal(got)
	}
	for range 3 {
		time.Sleep(50 * time.Millisecond) // the time for some calls
		locktest.Must(t, redisserver.PauseProcess(sleeper.Process))
		time.Sleep(sleeperTimeout() * 3 / 2) // the fault, held open
		locktest.Must(t, redisserver.ResumeProcess(sleeper.Process))
	}
	sleeper.Tell("enough")
	if got := sleeper.Hear(); got != "outages 0" {
		t.Error(got)
	}
}

// sleeperRole calls until the parent sends a line, and counts how often Redis was reported as silent.
func sleeperRole(c locktest.ChildSide) error {
	locks, err := core.New(c.Redis, core.WithBackendTimeout(sleeperTimeout()))
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(c.Ctx) }()
	var outages atomic.Int64
	ctx, end := context.WithCancel(c.Ctx)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := locks.Lock(fmt.Sprint("mine:", i)).Do(ctx, func(context.Context) error { return nil })
				if errors.Is(err, core.ErrUnavailable) {
					outages.Add(1)
				}
			}
		})
	}
	c.Tellf("warm")
	c.Hear()
	end()
	all.Wait()
	c.Tellf("outages %d", outages.Load())
	return nil
}

// An operation with one attempt on a connection that hangs for a while gets its answer in the end. A question is sent
// again on another connection.
func TestSilence_OperationsWithOneAttempt(t *testing.T) {
	t.Parallel()
	const hang = 5 * time.Second
	for name, op := range map[string]struct {
		question bool
		do       func(ctx context.Context, locks *core.Client, h *core.Hold) error
	}{
		"Ready": {true, func(ctx context.Context, locks *core.Client, _ *core.Hold) error { return locks.Ready(ctx) }},
		"State": {true, func(ctx context.Context, locks *core.Client, _ *core.Hold) error {
			return second(locks.Lock("k").State(ctx))
		}},
		"Inspect": {true, func(ctx context.Context, locks *core.Client, _ *core.Hold) error {
			return second(locks.Inspect(ctx, "k"))
		}},
		"Available": {true, func(ctx context.Context, locks *core.Client, _ *core.Hold) error {
			return second(locks.PlainSemaphore("s").Available(ctx))
		}},
		"Evict": {false, func(ctx context.Context, locks *core.Client, h *core.Hold) error {
			return second(locks.Evict(ctx, "k", h.Field()))
		}},
		"ForceRelease": {false, func(ctx context.Context, locks *core.Client, _ *core.Hold) error {
			return second(locks.Lock("k").ForceRelease(ctx))
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks := locktest.NewClient(t, rdb, locktest.Patient)
			_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
			locktest.Must(t, locks.Ready(t.Context()))
			locktest.Warm(t, locks)
			stuck := proxy.HoldRequest(faultproxy.Once(faultproxy.All(faultproxy.Command("EVALSHA"), faultproxy.Containing("stuck"))))
			other := locktest.GoAcquire(t.Context(), locks.Lock("stuck"))
			synctest.Wait()
			start := time.Now()
			time.AfterFunc(hang, stuck.Release)
			locktest.Must(t, op.do(t.Context(), locks, hold))
			if took := time.Since(start); op.question && took > time.Second || took > hang {
				t.Errorf("answered after %s", took)
			}
			locktest.MustRelease(t, locktest.Got(t, other).Hold)
		})
	}
}

// A renewal whose connection hangs is sent again on another connection and does not count as failed. Because the first
// command may land late, Refresh does not lower the lease.
func TestSilence_Renewal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		renewed := make(chan error, 10)
		observer := &core.Observer{Renewal: func(_ context.Context, r core.Renewal) { renewed <- r.Err }}
		locks := locktest.NewClient(t, rdb, core.WithObserver(observer))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		stuck := proxy.HoldRequest(faultproxy.Once(faultproxy.All(faultproxy.Command("EVALSHA", "EVAL"), faultproxy.Containing("k"))))
		if err := <-renewed; err != nil {
			t.Errorf("renewed: %v", err)
		}
		locktest.Must(t, hold.Refresh(t.Context(), 5*time.Second))
		if left := hold.Remaining(); left < 20*time.Second {
			t.Errorf("remaining: got %s, want at least 20s while the first renewal may land", left)
		}
		stuck.Release()
		locktest.MustRelease(t, hold)
	})
}

func second[A, B any](_ A, b B) B { return b }
