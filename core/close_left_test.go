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
)

// closedNow closes a client without patience, in the background.
func closedNow(locks *core.Client) <-chan error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- locks.Close(ended) }()
	return done
}

// wantLeft wants the last hold that has ended to be left, and observers to have been told so once.
func wantLeft(t *testing.T, obs *recorder) {
	t.Helper()
	if n := obs.count("loss"); n != 1 {
		t.Fatalf("told %d times that a hold is over, want once", n)
	}
	wantOnly(t, obs.first(t, "loss").data.(core.Loss).Cause, core.ErrClosed, core.ErrLost)
	if r := obs.last(t, "hold end").data.(core.HoldResult); r.Lost || !r.Left {
		t.Errorf("hold end: got %+v, want one that is left", r)
	}
}

// Close comes between the beginning of a release and its turn: the hold is left as any other, and
// its release has not failed.
func TestClose_LeavesAHoldWhoseReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, inner := range []bool{false, true} {
		parallelBubble(t, map[bool]string{false: "the only hold", true: "an inner hold"}[inner], func(t *testing.T, b *bed) {
			obs := newRecorder()
			locks, proxy := b.knowing(core.WithObserver(obs.observer()))
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			if inner {
				_, hold = acquired(t, ctx, locks.Lock("k"))
			}
			proxy.HoldReply(scriptOn(t, "refresh", "k"))
			proxy.HoldReply(scriptOn(t, "sethold", "k"))
			go func() { _ = hold.Refresh(context.Background(), time.Minute) }() // has the turn
			pass(time.Millisecond)
			done := releasing(hold)
			pass(time.Millisecond)
			closed := closedNow(locks)
			wantErr(t, <-done, core.ErrClosed)
			wantErr(t, <-closed, core.ErrClosed)
			if inner { // the outer one is left, too
				wantSame(t, "losses", obs.count("loss"), 2)
				if r := obs.last(t, "hold end").data.(core.HoldResult); !r.Reentrant || !r.Left {
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
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		obs := newRecorder()
		clients := process(t, servers, core.WithObserver(obs.observer()))
		ctx, hold := acquired(t, t.Context(), core.Redlock("k", clients...))
		wantErr(t, <-closedNow(clients[2]), core.ErrClosed)
		wantAlive(t, ctx)
		wantErr(t, hold.Release(t.Context()), core.ErrClosed)
		wantHeldOn(t, servers, "k", 1)
		wantLeft(t, obs)
	})
}

// A renewal that Close cuts short is no renewal that has failed.
func TestClose_CutsARenewalShort(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks, proxy := b.knowing(core.WithObserver(obs.observer()))
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldReply(scriptOn(t, "renew", "k"))
		<-renewal.Hit()
		wantErr(t, <-closedNow(locks), core.ErrClosed)
		wantErr(t, hold.Release(t.Context()), core.ErrClosed)
		wantLeft(t, obs)
		wantSame(t, "renewals", obs.count("renewal"), 0)
	})
}

// slowObserver takes its time for the first loss.
type slowObserver struct {
	*recorder

	first   atomic.Bool
	told    chan struct{}
	release chan struct{}
}

func (o *slowObserver) observer() *core.Observer {
	observer := o.recorder.observer()
	observer.Loss = o.observeLoss
	return observer
}

func (o *slowObserver) observeLoss(ctx context.Context, l core.Loss) {
	if o.first.CompareAndSwap(false, true) {
		close(o.told)
		<-o.release
	}
	o.recorder.observeLoss(ctx, l)
}

// One key of a MultiLock was lost, and Close leaves the other one before anybody was told: the whole
// is lost.
func TestClose_AMultiLockThatWasLostInAPartIsNotLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := &slowObserver{recorder: newRecorder(), told: make(chan struct{}), release: make(chan struct{})}
		locks := b.locks(core.WithObserver(obs.observer()))
		for i := range 10 {
			acquired(t, t.Context(), locks.Lock(fmt.Sprint("other", i))) // whose losses are told first, mostly
		}
		ctx, hold := acquired(t, t.Context(), locks.MultiLock("a", "b"))
		for i := range 10 {
			b.take(fmt.Sprint("other", i), stranger, time.Hour)
		}
		b.take("b", stranger, time.Hour)
		<-obs.told
		synctest.Wait()
		closed := closedNow(locks)
		pass(time.Millisecond)
		close(obs.release)
		<-closed
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			t.Errorf("the context has ended with %v", cause)
		}
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		if r := obs.last(t, "hold end").data.(core.HoldResult); !r.Lost || r.Left {
			t.Errorf("hold end: got %+v, want one that is lost", r)
		}
	})
}
