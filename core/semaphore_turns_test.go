package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A client that waits beside one that keeps all permits busy gets its turns, also when it is farther
// from Redis. Their ways have lengths: where no way takes time, each release and the attempts that
// follow it are at one instant of the bubble, and who schedules the goroutines decides who is first,
// perhaps always in the same way.
func TestPermitSemaphore_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	const near = 210 * time.Microsecond
	for name, far := range map[string]time.Duration{"nearer": near - 80*time.Microsecond, "a little farther": near + 30*time.Microsecond, "far": 24 * near} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			busy, lone := b.poolAway(near), b.poolAway(far)
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
				o := got(t, acquiring(t.Context(), lone, core.WaitTime(10*time.Second)))
				longest = max(longest, o.took)
				released(t, o.hold)
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
func (b *bed) poolAway(d time.Duration) core.Lock {
	b.t.Helper()
	pool := b.locks().Semaphore("pool", 2).Lock
	_, first := acquired(b.t, b.t.Context(), pool)
	_, second := acquired(b.t, b.t.Context(), pool)
	way, rdb := faultproxy.Far(b.t, b.Client, 0)
	away := locksOn(b.t, rdb).Semaphore("pool", 2).Lock
	waiting := acquiring(b.t.Context(), away)
	pass(time.Second)
	released(b.t, first)
	released(b.t, second)
	released(b.t, got(b.t, waiting).hold)
	way.Set(d)
	return away
}
