package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A waiter of any kind finds out within the poll interval that the lock is free, whatever has become
// of the messages, and keeps what is left of its wait.
func TestPitfalls_NoMessage(t *testing.T) {
	t.Parallel()
	const hold = 2500 * time.Millisecond
	for name, free := range map[string]func(w *world, h *core.Hold){
		"deleted":                func(w *world, _ *core.Hold) { w.flush() },
		"released":               func(w *world, h *core.Hold) { released(w.t, h) },
		"its holder has crashed": func(*world, *core.Hold) {},
	} {
		parallelSorts(t, name, func(t *testing.T, w *world) {
			w.inject(holdRequest, func() faultproxy.Match { return faultproxy.Command("subscribe", "ssubscribe") })
			start := time.Now()
			_, h := acquired(t, t.Context(), w.other, core.LeaseTime(hold))
			got := acquiring(t.Context(), w.mine, core.WaitTime(10*time.Second))
			pass(hold - 100*time.Millisecond)
			freed := time.Now()
			free(w, h)
			if name == "its holder has crashed" {
				freed = start.Add(hold)
			}
			o := <-got
			must(t, o.err)
			wantSoon(t, "it was found after %s", freed, 1100*time.Millisecond)
			released(t, o.hold)
		})
	}
}

// Redis falls silent under a waiter of any kind: the wait ends in time, and is not told that the
// lock is taken by what nobody knows.
func TestPitfalls_SilentRedisUnderAWaiter(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		_, h := acquired(t, t.Context(), w.other, core.LeaseTime(time.Hour))
		got := acquiring(t.Context(), w.mine, core.WaitTime(3*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		bounded := acquiring(ctx, w.mine)
		pass(500 * time.Millisecond)
		w.hole(true)
		if o := <-bounded; o.err == nil || o.took > 2*time.Second+5*time.Millisecond {
			t.Errorf("the bounded one took %s: %v", o.took, o.err)
		}
		o := <-got
		if wantErr(t, o.err, core.ErrUnavailable); o.took > 3*time.Second+5*time.Millisecond {
			t.Errorf("it took %s", o.took)
		}
		o = <-acquiring(t.Context(), w.mine, core.WaitTime(200*time.Millisecond))
		if wantErr(t, o.err, core.ErrUnavailable); o.took > 205*time.Millisecond {
			t.Errorf("the next one took %s", o.took)
		}
		w.hole(false)
		released(t, h)
		pass(5 * time.Second)
		w.wantNothing("when redis answers again")
		w.wantFree()
	})
}

// After an outage the client is quiet again, of any kind, however many attempts it has cut short.
func TestPitfalls_QuietAfterAnOutage(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		w.hole(true)
		var all []<-chan outcome
		for i := range 60 {
			all = append(all, acquiring(t.Context(), w.mine, core.WaitTime(time.Duration(1+i)*100*time.Millisecond)))
			pass(50 * time.Millisecond)
		}
		for _, got := range all {
			wantErr(t, (<-got).err, core.ErrUnavailable)
		}
		w.hole(false)
		pass(2 * time.Second)
		sent := w.inject(func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.Watch(m) }, func() faultproxy.Match { return scripts })
		pass(10 * time.Second)
		for i, s := range sent {
			if n := s.Hits(); n > 20 {
				t.Errorf("%d scripts on server %d in ten seconds in which nobody wants anything", n, i)
			}
		}
		w.wantNothing("when redis answers again")
		w.wantFree()
	})
}
