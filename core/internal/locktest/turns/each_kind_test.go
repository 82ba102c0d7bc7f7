package turns_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A waiter finds a free lock within the poll interval although messages are lost, and keeps the rest of its wait
// time.
func TestWaiter_EachKind_NoMessage(t *testing.T) {
	t.Parallel()
	const hold = 2500 * time.Millisecond
	for name, free := range map[string]func(w *locktest.World, h *core.Hold){
		"deleted":                func(w *locktest.World, _ *core.Hold) { w.Flush() },
		"released":               func(w *locktest.World, h *core.Hold) { locktest.MustRelease(w.T, h) },
		"its holder has crashed": func(*locktest.World, *core.Hold) {},
	} {
		locktest.ParallelEachKind(t, name, func(t *testing.T, w *locktest.World) {
			w.Inject(locktest.HoldRequest, func() faultproxy.Match { return faultproxy.Command("subscribe", "ssubscribe") })
			start := time.Now()
			_, h := locktest.MustAcquire(t, t.Context(), w.Other, core.LeaseTime(hold))
			got := locktest.GoAcquire(t.Context(), w.Mine, core.WaitTime(10*time.Second))
			locktest.Pass(hold - 100*time.Millisecond)
			freed := time.Now()
			free(w, h)
			if name == "its holder has crashed" {
				freed = start.Add(hold)
			}
			o := locktest.Got(t, got)
			locktest.WantSoon(t, "the waiter had the lock after %s", freed, 1100*time.Millisecond)
			locktest.MustRelease(t, o.Hold)
		})
	}
}

// Redis falls silent while a caller waits. The wait ends in time with ErrUnavailable, because the client does not know
// whether the lock is taken.
func TestWaiter_EachKind_SilentRedis(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		_, h := locktest.MustAcquire(t, t.Context(), w.Other, core.LeaseTime(time.Hour))
		got := locktest.GoAcquire(t.Context(), w.Mine, core.WaitTime(3*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		bounded := locktest.GoAcquire(ctx, w.Mine)
		locktest.Pass(500 * time.Millisecond)
		w.BlackHole(true)
		if o := <-bounded; o.Err == nil || o.Took > 2*time.Second+5*time.Millisecond {
			t.Errorf("the waiter with a wait time took %s: %v", o.Took, o.Err)
		}
		o := <-got
		if locktest.WantErr(t, o.Err, core.ErrUnavailable); o.Took > 3*time.Second+5*time.Millisecond {
			t.Errorf("the wait took %s", o.Took)
		}
		o = <-locktest.GoAcquire(t.Context(), w.Mine, core.WaitTime(200*time.Millisecond))
		if locktest.WantErr(t, o.Err, core.ErrUnavailable); o.Took > 205*time.Millisecond {
			t.Errorf("the next caller took %s", o.Took)
		}
		w.BlackHole(false)
		locktest.MustRelease(t, h)
		locktest.Pass(5 * time.Second)
		w.WantNothing("when redis answers again")
		w.WantFree()
	})
}

// After an outage the client soon sends nothing more, however many attempts the outage has cut short.
func TestWaiter_EachKind_QuietAfterAnOutage(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		w.BlackHole(true)
		var all []<-chan locktest.Outcome
		for i := range 60 {
			all = append(all, locktest.GoAcquire(t.Context(), w.Mine, core.WaitTime(time.Duration(1+i)*100*time.Millisecond)))
			locktest.Pass(50 * time.Millisecond)
		}
		for _, got := range all {
			locktest.WantErr(t, (<-got).Err, core.ErrUnavailable)
		}
		w.BlackHole(false)
		locktest.Pass(2 * time.Second)
		sent := w.WatchScripts()
		locktest.Pass(10 * time.Second)
		for i, s := range sent {
			if n := s.Hits(); n > 20 {
				t.Errorf("server %[2]d: %[1]d scripts in ten seconds without callers, want at most 20", n, i)
			}
		}
		w.WantNothing("when redis answers again")
		w.WantFree()
	})
}
