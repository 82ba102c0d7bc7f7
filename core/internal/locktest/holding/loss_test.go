package holding_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// TestHold_ErrAtTheInstantOfTheLoss asks a context from several goroutines while its lease runs out. From the instant
// at which nothing of the lease is left, Err is not nil, even before the watchdog cancels the context.
func TestHold_ErrAtTheInstantOfTheLoss(t *testing.T) {
	t.Parallel()
	locks := locktest.Embedded(t).Locks(locktest.Patient)
	var rounds sync.WaitGroup
	for range 30 {
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(20*time.Millisecond))
		for range 4 {
			rounds.Go(func() {
				for {
					over := hold.Remaining() <= 0
					if ctx.Err() != nil {
						return
					}
					if over {
						t.Error("nothing is left of the lease, and Err is nil")
						return
					}
				}
			})
		}
		rounds.Wait()
		if t.Failed() {
			return
		}
	}
}

func TestHold_FixedLeaseExpires(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(10*time.Second))
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took >= 10*time.Second || took < 9*time.Second {
			t.Errorf("ended after %s, want a little before the lease", took)
		}
		if b.Exists(t.Context(), "k").Val() != 1 {
			t.Error("the key was gone before the holder knew")
		}
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, ctx.Err(), context.Canceled)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s, want 0", hold.Remaining())
		}
	})
}

// Another client has the lock. An operation of the former holder returns ErrLost and does not touch the lock.
func TestHold_OperationsOfALostLock(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, hold, inner *core.Hold) error{
		"refresh":       func(ctx context.Context, hold, _ *core.Hold) error { return hold.Refresh(ctx, time.Hour) },
		"leave":         func(ctx context.Context, hold, _ *core.Hold) error { return hold.Leave(ctx, time.Hour) },
		"release":       func(ctx context.Context, hold, _ *core.Hold) error { return hold.Release(ctx) },
		"inner_release": func(ctx context.Context, _, inner *core.Hold) error { return inner.Release(ctx) },
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			l := b.Locks().Lock("k")
			ctx, hold := locktest.MustAcquire(t, t.Context(), l)
			var inner *core.Hold
			if name == "inner_release" {
				_, inner = locktest.MustAcquire(t, ctx, l)
			}
			b.Take("k", locktest.Stranger, time.Minute)
			locktest.WantErr(t, do(t.Context(), hold, inner), core.ErrLost)
			if name == "refresh" || name == "inner_release" { // the hold has not ended otherwise
				locktest.WantEnded(t, ctx, core.ErrLost)
				locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			}
			b.WantHolder("k", locktest.Stranger)
			b.WantTTL("k", 50*time.Second, time.Minute)
		})
	}
}
