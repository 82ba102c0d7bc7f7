package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// wantLeft wants the last hold that has ended to be left, and observers to have been told so once.
func wantLeft(t *testing.T, obs *locktest.Recorder) {
	t.Helper()
	if n := obs.Count("loss"); n != 1 {
		t.Fatalf("told %d times that a hold is over, want once", n)
	}
	locktest.WantOnly(t, obs.First(t, "loss").Data.(core.Loss).Cause, core.ErrClosed, core.ErrLost)
	if r := obs.Last(t, "hold end").Data.(core.HoldResult); r.Lost || !r.Left {
		t.Errorf("hold end: got %+v, want one that is left", r)
	}
}

// Close comes between the beginning of a release and its turn: the hold is left as any other, and
// its release has not failed.
func TestClose_LeavesAHoldWhoseReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, inner := range []bool{false, true} {
		locktest.ParallelBubble(t, map[bool]string{false: "the only hold", true: "an inner hold"}[inner], func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			if inner {
				_, hold = locktest.MustAcquire(t, ctx, locks.Lock("k"))
			}
			proxy.HoldReply(locktest.ScriptOn(t, "refresh", "k"))
			proxy.HoldReply(locktest.ScriptOn(t, "sethold", "k"))
			go func() { _ = hold.Refresh(context.Background(), time.Minute) }() // has the turn
			locktest.Pass(time.Millisecond)
			done := locktest.GoRelease(hold)
			locktest.Pass(time.Millisecond)
			closed := locktest.GoClose(locks)
			locktest.WantErr(t, <-done, core.ErrClosed)
			locktest.WantErr(t, <-closed, core.ErrClosed)
			if inner { // the outer one is left, too
				locktest.WantSame(t, "losses", obs.Count("loss"), 2)
				if r := obs.Last(t, "hold end").Data.(core.HoldResult); !r.Reentrant || !r.Left {
					t.Errorf("hold end: got %+v, want the inner one, left", r)
				}
				return
			}
			wantLeft(t, obs)
		})
	}
}

// One client of a Redlock is closed: the hold goes on, and its release frees the others. What is left
// to its lease is no release that has failed.
func TestClose_LeavesAPartOfARedlock(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		obs := &locktest.Recorder{}
		clients := locktest.BehindEach(t, servers, core.WithObserver(obs.Observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", clients...))
		locktest.WantErr(t, <-locktest.GoClose(clients[2]), core.ErrClosed)
		locktest.WantAlive(t, ctx)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		locktest.WantHeldOn(t, servers, "k", 1)
		wantLeft(t, obs)
	})
}

// A renewal that Close cuts short is no renewal that has failed.
func TestClose_CutsARenewalShort(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldReply(locktest.ScriptOn(t, "renew", "k"))
		<-renewal.Hit()
		locktest.WantErr(t, <-locktest.GoClose(locks), core.ErrClosed)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		wantLeft(t, obs)
		locktest.WantSame(t, "renewals", obs.Count("renewal"), 0)
	})
}

// slowObserver takes its time for the first loss.
type slowObserver struct {
	*locktest.Recorder

	first   atomic.Bool
	told    chan struct{}
	release chan struct{}
}

func (o *slowObserver) observer() *core.Observer {
	observer := o.Recorder.Observer()
	observer.Loss = o.observeLoss
	return observer
}

func (o *slowObserver) observeLoss(ctx context.Context, l core.Loss) {
	if o.first.CompareAndSwap(false, true) {
		close(o.told)
		<-o.release
	}
	o.Recorder.ObserveLoss(ctx, l)
}

// One key of a MultiLock was lost, and Close leaves the other one before anybody was told: the whole
// is lost.
func TestClose_AMultiLockThatWasLostInAPartIsNotLeft(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &slowObserver{Recorder: &locktest.Recorder{}, told: make(chan struct{}), release: make(chan struct{})}
		locks := b.Locks(core.WithObserver(obs.observer()))
		for i := range 10 {
			locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint("other", i))) // whose losses are told first, mostly
		}
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b"))
		for i := range 10 {
			b.Take(fmt.Sprint("other", i), locktest.Stranger, time.Hour)
		}
		b.Take("b", locktest.Stranger, time.Hour)
		<-obs.told
		synctest.Wait()
		closed := locktest.GoClose(locks)
		locktest.Pass(time.Millisecond)
		close(obs.release)
		<-closed
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			t.Errorf("the context has ended with %v", cause)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		if r := obs.Last(t, "hold end").Data.(core.HoldResult); !r.Lost || r.Left {
			t.Errorf("hold end: got %+v, want one that is lost", r)
		}
	})
}
