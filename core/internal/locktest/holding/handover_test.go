package holding_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestHandover_MovesTheHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		type key struct{}
		request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		oldCtx, old := locktest.MustAcquire(t, request, l)
		ctx, hold := old.Handover()
		cancel()
		locktest.WantErr(t, oldCtx.Err(), context.Canceled)
		locktest.WantErr(t, old.Release(t.Context()), core.ErrNotHeld)
		locktest.Pass(5 * time.Minute)
		locktest.WantAlive(t, ctx)
		if ctx.Value(key{}) != "v" {
			t.Error("the new context has lost the values")
		}
		b.WantCount(hold, "1")
		if _, ok := core.Held(oldCtx, "k"); ok {
			t.Error("the old context still holds the lock")
		}
		if h, ok := core.Held(ctx, "k"); !ok || h != hold {
			t.Error("the new context does not hold the lock")
		}
		_, inner := locktest.MustAcquire(t, ctx, l)
		b.WantCount(hold, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		locktest.WantEnded(t, ctx, core.ErrReleased)
		b.WantGone("k")
	})
}

func TestHandover_LossEndsTheNewContext(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Second))
		ctx, hold := old.Handover()
		locktest.Pass(time.Second)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// Observers are notified once of a hold that was lost before its handover.
func TestHandover_OfALostHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Second))
		locktest.Pass(time.Second)
		ctx, hold := old.Handover()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantSame(t, "losses reported", obs.Count("loss"), 1)
	})
}

func TestHandover_OfAnEndedHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"))
		locktest.MustRelease(t, old)
		ctx, hold := old.Handover()
		if ctx.Err() == nil {
			t.Error("the context has not ended")
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		if starts, ends := obs.Count("hold start"), obs.Count("hold end"); starts != ends {
			t.Errorf("observed %d starts and %d ends of holds", starts, ends)
		}
	})
}

func TestHandover_Observers(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"))
		_, hold := old.Handover()
		locktest.MustRelease(t, hold)
		if starts, ends := obs.Count("hold start"), obs.Count("hold end"); starts != 2 || ends != 2 {
			t.Errorf("observed %d starts and %d ends of holds, want 2 and 2", starts, ends)
		}
	})
}

// A Refresh whose hold is handed over while it waits for its turn returns ErrNotHeld. The watchdog renews the new hold
// as before.
func TestHandover_BeforeTheTurnOfARefresh(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
		slow := proxy.HoldReply(locktest.ScriptOn(t, "sethold", "k"))
		first := locktest.GoRelease(inner) // runs first
		<-slow.Hit()
		late := locktest.Go(func() error { return hold.Refresh(context.Background(), time.Minute) })
		synctest.Wait()
		moved, hold := hold.Handover()
		slow.Release()
		locktest.Must(t, <-first)
		locktest.WantErr(t, <-late, core.ErrNotHeld)
		locktest.Pass(10 * time.Minute)
		locktest.WantAlive(t, moved)
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}
