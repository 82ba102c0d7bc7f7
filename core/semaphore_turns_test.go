package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A client that waits beside one that keeps all permits busy gets its turns, also when it is farther
// from Redis. Their ways have lengths: where no way takes time, each release and the attempts that
// follow it are at one instant of the bubble, and who schedules the goroutines decides who is first,
// perhaps always in the same way.
func TestPermitSemaphore_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	const near = 210 * time.Microsecond
	for name, far := range map[string]time.Duration{"nearer": near - 80*time.Microsecond, "a little farther": near + 30*time.Microsecond, "far": 24 * near} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			busy, lone := poolAway(b, near), poolAway(b, far)
			ctx, stop := context.WithCancel(context.Background())
			var callers sync.WaitGroup
			for i := range 8 {
				callers.Go(func() {
					for ctx.Err() == nil {
						_ = busy.Do(ctx, func(context.Context) error {
							time.Sleep(time.Duration(1000+100*i) * time.Microsecond) // the work, in the time of the bubble
							return nil
						})
					}
				})
			}
			var longest time.Duration
			for range 20 {
				o := locktest.Got(t, locktest.GoAcquire(t.Context(), lone, core.WaitTime(10*time.Second)))
				longest = max(longest, o.Took)
				locktest.MustRelease(t, o.Hold)
			}
			stop()
			callers.Wait()
			t.Logf("the longest of 20 waits: %s", longest)
			if longest > time.Second {
				t.Errorf("it waited %s", longest)
			}
		})
	}
}

// poolAway is a pool of two permits for a client that is so far away from Redis, from when its
// subscription is there: go-redis makes that under a mutex, for which the time of a bubble does not go on.
func poolAway(b *locktest.Redis, d time.Duration) core.Lock {
	b.T.Helper()
	pool := b.Locks().Semaphore("pool", 2).Lock
	_, first := locktest.MustAcquire(b.T, b.T.Context(), pool)
	_, second := locktest.MustAcquire(b.T, b.T.Context(), pool)
	way, rdb := faultproxy.Far(b.T, b.Client, 0)
	away := locktest.NewClient(b.T, rdb).Semaphore("pool", 2).Lock
	waiting := locktest.GoAcquire(b.T.Context(), away)
	locktest.Pass(time.Second)
	locktest.MustRelease(b.T, first)
	locktest.MustRelease(b.T, second)
	locktest.MustRelease(b.T, locktest.Got(b.T, waiting).Hold)
	way.Set(d)
	return away
}
