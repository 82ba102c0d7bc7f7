package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// If the answer to a command that raises the lease arrives after the end of the old lease, the lock is lost. It does
// not stay in Redis for the new lease.
func TestHold_LeaseRaisedTooLate(t *testing.T) {
	t.Parallel()
	for name, raise := range map[string]func(lock core.Lock, ctx context.Context, hold *core.Hold) error{
		"by a re-entry": func(lock core.Lock, ctx context.Context, _ *core.Hold) error {
			_, _, err := lock.Acquire(ctx, core.LeaseTime(time.Hour))
			return err
		},
		"by a refresh": func(_ core.Lock, ctx context.Context, hold *core.Hold) error {
			return hold.Refresh(context.WithoutCancel(ctx), time.Hour)
		},
		"by a refresh beside another hold": func(lock core.Lock, ctx context.Context, hold *core.Hold) error {
			if _, _, err := lock.Acquire(ctx, core.LeaseTime(100*time.Millisecond)); err != nil {
				return err
			}
			return hold.Refresh(context.WithoutCancel(ctx), time.Hour)
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(100*time.Millisecond))
			late := proxy.DelayReply(faultproxy.Containing("3600000"), 200*time.Millisecond)
			if err := raise(locks.Lock("k"), ctx, hold); err != nil { // a late refresh has still set the lease
				locktest.WantErr(t, err, core.ErrLost)
			}
			late.Remove()
			locktest.WantEnded(t, ctx, core.ErrLost)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// If a command that raises the lease has no answer, the lock is lost when the old lease ends. It does not stay in Redis
// for the new lease.
func TestHold_LeaseRaisedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lease  core.AcquireOption // the zero value: renewed
		script string
		raise  func(ctx context.Context, lock core.Lock)
	}{
		"by a renewal": {core.AcquireOption{}, "renew", func(context.Context, core.Lock) {}},
		"by a re-entry": {core.LeaseTime(5 * time.Second), "sethold", func(ctx context.Context, lock core.Lock) {
			o := <-locktest.GoAcquire(ctx, lock, core.LeaseTime(time.Hour), core.WaitTime(time.Second))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), tt.lease)
			lost := proxy.DropReply(locktest.ScriptOn(t, tt.script, "k"))
			tt.raise(ctx, locks.Lock("k"))
			<-ctx.Done()
			b.WantTTL("k", 10*time.Second, time.Hour)
			lost.Remove()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}
