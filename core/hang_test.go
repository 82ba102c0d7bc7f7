package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// An operation with one attempt that waits on a connection that hangs for a while has its answer in the end. A
// question is asked again on another connection.
func TestHang_OperationsWithOneAttempt(t *testing.T) {
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
			o := <-other
			locktest.Must(t, o.Err)
			locktest.MustRelease(t, o.Hold)
		})
	}
}

// A renewal whose connection hangs is sent again on another one, and is no failure. The first sending may land late: so
// Refresh lowers no lease.
func TestHang_Renewal(t *testing.T) {
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
			t.Errorf("a lease of %s is left, and the first renewal may land", left)
		}
		stuck.Release()
		locktest.MustRelease(t, hold)
	})
}
