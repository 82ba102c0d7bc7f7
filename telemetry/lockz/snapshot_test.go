package lockz_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// A hold and its re-entries share one row until the hold ends. The row contains all data about the hold.
func TestSnapshot_Holds(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		id := trace.TraceID{1, 2, 3}
		traced := trace.ContextWithSpanContext(b.t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}}))
		ctx, outer := b.take(traced, b.locks.FencedLock("order:42"), core.Label("pay"), core.LeaseTime(10*time.Second))
		_, inner := b.take(ctx, b.locks.FencedLock("order:42"), core.Label("pay-again"))
		time.Sleep(3 * time.Second) // virtual time

		s := b.Snapshot()
		if s.HoldsTotal != 1 || len(s.Holds) != 1 {
			t.Fatalf("%d holds, %d listed, want one", s.HoldsTotal, len(s.Holds))
		}
		h := s.Holds[0]
		if h.Rule != "pay" || h.Kind != "fenced" || h.KeyHash != core.KeyHash("shop:order:42") || h.Key != "" {
			t.Errorf("got %+v, want the rule, the kind and the hash of the key, and not the key", h)
		}
		if h.Holder != outer.Field() || h.Reentries != 1 || h.Token != outer.Token() || h.TraceID != id.String() {
			t.Errorf("got holder %s, %d re-entries, token %d, trace %s", h.Holder, h.Reentries, h.Token, h.TraceID)
		}
		if h.Held != 3 || h.LeaseLeft != 7 || h.Watchdog || h.Lost {
			t.Errorf("held for %v s, lease left %v s, watchdog %t, lost %t; want 3, 7 and neither", h.Held, h.LeaseLeft, h.Watchdog, h.Lost)
		}

		b.free(inner)
		if s := b.Snapshot(); s.HoldsTotal != 1 || s.Holds[0].Reentries != 0 {
			t.Errorf("after the inner release: %+v", s.Holds)
		}
		b.free(outer)
		if s := b.Snapshot(); s.HoldsTotal != 0 {
			t.Errorf("after the release: %+v", s.Holds)
		}
	})
}

// endGate is an observer that delays the end of some holds for later observers until it is closed.
type endGate chan struct{}

func (g endGate) observer() *core.Observer { return &core.Observer{HoldEnd: g.observeHoldEnd} }

func (g endGate) observeHoldEnd(_ context.Context, r core.HoldResult) {
	if r.Label == "before" {
		<-g
	}
}

// Holds that pass a lock on have one field in Redis. The page shows the last hold, even if the end of an earlier one has not
// been observed yet. A caller carries only its own hold.
func TestSnapshot_HoldsWithOneField(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		gate := make(endGate)
		locks, err := core.New(b.server.Client(), core.WithObserver(gate.observer(), b.Page.Observer()), core.WithPrefix("shop:"))
		if err != nil {
			t.Fatal(err)
		}
		b.server.Take("shop:b", time.Hour)
		ctx, outer := b.take(b.t.Context(), locks.Lock("a"), core.Label("before"))
		_, inner := b.take(ctx, locks.Lock("a"), core.Label("before"))
		var callers sync.WaitGroup
		callers.Go(func() {
			ctx, next, err := locks.Lock("a").Acquire(b.t.Context(), core.Label("next"))
			if err != nil {
				t.Error(err)
				return
			}
			_, _, _ = locks.Lock("b").Acquire(ctx, core.WaitTime(time.Minute))
			b.free(next)
		})
		synctest.Wait()
		time.Sleep(time.Millisecond) // virtual time: the holds begin at different times
		for _, h := range []*core.Hold{outer, inner} {
			callers.Go(func() { b.free(h) })
		}
		synctest.Wait()
		time.Sleep(time.Second) // virtual time
		for range 2 {
			s := b.Snapshot()
			if s.HoldsTotal != 1 || s.Holds[0].Holder != outer.Field() || s.Holds[0].Rule != "next" || s.Holds[0].Held != 1 || s.Holds[0].Reentries != 0 {
				t.Errorf("holds: %+v, want the hold of next, for 1 s, without a re-entry", s.Holds)
			}
			if s.WaitersTotal != 1 || len(s.Waiters[0].Holds) != 1 || s.Waiters[0].Holds[0].Rule != "next" {
				t.Errorf("waiters: %+v, want one, which holds what next holds", s.Waiters)
			}
			if gate != nil {
				close(gate)
				gate = nil
			}
			synctest.Wait()
		}
		callers.Wait()
		if err := locks.Close(b.t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The remaining lease is counted from the last renewal.
func TestSnapshot_LeaseLeftAfterRenewals(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		time.Sleep(55 * time.Second) // virtual time
		h := b.Snapshot().Holds[0]
		if !h.Watchdog || h.LeaseLeft < 19 || h.LeaseLeft > 30 {
			t.Errorf("lease left: got %v s, want 30 s minus the time since the last renewal", h.LeaseLeft)
		}
		b.free(hold)
	})
}

// Waiters are listed in the order in which they arrived, with their blocker and the locks that they
// hold.
func TestSnapshot_Waiters(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("holder"))
		first := b.wait(b.t.Context(), b.locks.Lock("a"), core.Label("first"))
		time.Sleep(2 * time.Second) // virtual time
		ctx, other := b.take(b.t.Context(), b.locks.Lock("b"), core.Label("second"))
		second := b.wait(ctx, b.locks.Lock("a"), core.Label("second"))
		time.Sleep(time.Second) // virtual time

		s := b.Snapshot()
		if s.WaitersTotal != 2 || s.Waiters[0].Rule != "first" || s.Waiters[1].Rule != "second" {
			t.Fatalf("got %+v, want first and second", s.Waiters)
		}
		if w := s.Waiters[0]; w.Waited != 3 || w.Position != 1 || len(w.Holds) != 0 || w.Deadlock != 0 {
			t.Errorf("first: %+v", w)
		}
		w := s.Waiters[1]
		if w.Waited != 1 || w.Position != 2 || len(w.Holds) != 1 || w.Holds[0].KeyHash != core.KeyHash("shop:b") {
			t.Errorf("second: %+v", w)
		}
		want := lockz.Blocker{Holder: hold.Field(), Here: true, Ours: true, Rule: "holder", Held: 3}
		if w.BlockedBy != want {
			t.Errorf("blocked by %+v, want %+v", w.BlockedBy, want)
		}
		if s.Holds[0].Waiters != 2 {
			t.Errorf("the hold has %d waiters, want 2", s.Holds[0].Waiters)
		}
		b.free(hold)
		b.wantGranted(first, second)
		b.free(other)
		if s := b.Snapshot(); s.WaitersTotal != 0 || s.HoldsTotal != 0 {
			t.Errorf("at the end: %d waiters, %d holds", s.WaitersTotal, s.HoldsTotal)
		}
	})
}

// The page shows the field of a blocker in another process, even for later waiters that have not asked Redis.
func TestSnapshot_WaiterBlockedByAnotherProcess(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		stranger := b.server.Take("shop:a", time.Minute)
		done := b.wait(b.t.Context(), b.locks.Lock("a"), core.WaitTime(2*time.Second))
		second := b.wait(b.t.Context(), b.locks.Lock("a"), core.WaitTime(time.Second))
		for i, w := range b.Snapshot().Waiters {
			if want := (lockz.Blocker{Holder: stranger}); w.BlockedBy != want {
				t.Errorf("waiter %d: got %+v, want %+v", i+1, w.BlockedBy, want)
			}
		}
		b.wantRefused(second, done)
	})
}

// A refusal is kept with its trace. Its error text has no key.
func TestSnapshot_Refusals(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		stranger := b.server.Take("shop:a", time.Minute)
		id := trace.TraceID{7}
		ctx := trace.ContextWithSpanContext(b.t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}}))
		if _, _, err := b.locks.Lock("a").Acquire(ctx, core.WaitTime(time.Second), core.Label("pay")); !errors.Is(err, core.ErrNotAcquired) {
			t.Fatal(err)
		}
		s := b.Snapshot()
		if s.RefusalsTotal != 1 {
			t.Fatalf("%d refusals, want 1", s.RefusalsTotal)
		}
		e := s.Refusals[0]
		if e.What != "busy" || e.Rule != "pay" || e.Holder != stranger || e.Lasted != 1 || e.TraceID != id.String() {
			t.Errorf("got %+v", e)
		}
		b.server.Down()
		if _, _, err := b.locks.Lock("a").Acquire(ctx, core.WaitTime(time.Second), core.Label("pay")); !errors.Is(err, core.ErrUnavailable) {
			t.Fatal(err)
		}
		b.server.Up()
		if e := b.Snapshot().Refusals[0]; e.What != "backend" || e.Error == "" || strings.Contains(e.Error, "shop:a") {
			t.Errorf("without Redis: got %+v, want an error without the key", e)
		}
	})
}

// A loss is an incident, and the hold is marked as lost until it is released.
func TestSnapshot_Losses(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.LeaseTime(time.Second))
		<-ctx.Done()
		time.Sleep(time.Millisecond) // virtual time, because the observers are notified after the context is canceled
		s := b.Snapshot()
		if len(s.Holds) != 1 || !s.Holds[0].Lost || s.Holds[0].LeaseLeft != 0 {
			t.Errorf("holds: %+v, want one lost hold", s.Holds)
		}
		if s.IncidentsTotal != 1 || s.Incidents[0].What != "lost" || s.Incidents[0].Holder != hold.Field() {
			t.Errorf("incidents: %+v, want the loss", s.Incidents)
		}
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}
		if s := b.Snapshot(); s.HoldsTotal != 0 || s.IncidentsTotal != 1 {
			t.Errorf("after the release: %d holds, %d incidents", s.HoldsTotal, s.IncidentsTotal)
		}
	})
}

// A hold that Close left to its lease is not lost, because it still blocks waiters. It is shown as another
// kind of incident.
func TestSnapshot_LeftByClose(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		locks, err := core.New(b.server.Client(), core.WithObserver(b.Page.Observer()), core.WithPrefix("shop:"))
		if err != nil {
			t.Fatal(err)
		}
		_, hold := b.take(b.t.Context(), locks.Lock("a"), core.Label("pay"))
		ended, cancel := context.WithCancel(b.t.Context())
		cancel()
		if err := locks.Close(ended); !errors.Is(err, core.ErrClosed) {
			t.Error(err)
		}
		s := b.Snapshot()
		if len(s.Holds) != 1 || s.Holds[0].Lost || s.Holds[0].LeaseLeft != 30 || s.Lost != 0 {
			t.Errorf("holds: %+v, %d lost; want one hold that is not lost", s.Holds, s.Lost)
		}
		if s.IncidentsTotal != 1 || s.Incidents[0].What != "left" || s.Incidents[0].Holder != hold.Field() {
			t.Errorf("incidents: %+v, want the hold that was left", s.Incidents)
		}
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Error(err)
		}
		if s := b.Snapshot(); s.HoldsTotal != 0 || s.IncidentsTotal != 1 || s.Lost != 0 {
			t.Errorf("after the release: %d holds, %d incidents, %d lost", s.HoldsTotal, s.IncidentsTotal, s.Lost)
		}
	})
}

// A hold that was held for longer than its limit is not lost, because it still blocks waiters. It is shown as another kind
// of incident.
func TestSnapshot_HeldTooLong(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"), core.MaxHold(15*time.Second))
		<-ctx.Done()
		synctest.Wait()
		s := b.Snapshot()
		if len(s.Holds) != 1 || s.Holds[0].Lost || s.Holds[0].LeaseLeft <= 0 || s.Lost != 0 {
			t.Errorf("holds: %+v, %d lost; want one hold that is not lost", s.Holds, s.Lost)
		}
		if s.IncidentsTotal != 1 || s.Incidents[0].What != "held too long" || s.Incidents[0].Holder != hold.Field() {
			t.Errorf("incidents: %+v, want the hold that was held too long", s.Incidents)
		}
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrHeldTooLong) {
			t.Error(err)
		}
		if s := b.Snapshot(); s.HoldsTotal != 0 || s.IncidentsTotal != 1 || s.Lost != 0 {
			t.Errorf("after the release: %d holds, %d incidents, %d lost", s.HoldsTotal, s.IncidentsTotal, s.Lost)
		}
	})
}

// A hold that was handed over is one row, until its release.
func TestSnapshot_Handover(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		_, moved := hold.Handover()
		if s := b.Snapshot(); s.HoldsTotal != 1 || len(s.Holds) != 1 {
			t.Errorf("after the handover: %d holds: %+v", s.HoldsTotal, s.Holds)
		}
		b.free(moved)
		if s := b.Snapshot(); s.HoldsTotal != 0 || len(s.Holds) != 0 {
			t.Errorf("after the release: %d holds: %+v", s.HoldsTotal, s.Holds)
		}
	})
}

// Frequent events do not replace rare ones. After many unlocked runs and busy refusals, JSON and the page
// still list a lost lock and a backend failure.
func TestSnapshot_RareEventsAreKept(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		b.Observer().AcquireEnd(b.Observer().AcquireStart(b.t.Context(), core.Acquisition{}),
			core.AcquireResult{Acquisition: core.Acquisition{Key: "shop:z", Start: time.Now()}, Outcome: core.OutcomeBackend})
		_, lost := b.take(b.t.Context(), b.locks.Lock("gone"), core.Label("pay"))
		if _, err := b.locks.Lock("gone").ForceRelease(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lost.Release(b.t.Context()); err == nil {
			t.Fatal("the holder released a lock that it had lost")
		}
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		for range 300 {
			time.Sleep(time.Millisecond) // virtual time
			b.Observer().Rules.(*aspect.Observer).Unlocked(b.t.Context(), aspect.UnlockedRun{Subject: aspect.Subject{Rule: "basket"}, Reason: aspect.UnlockedDryRun})
			if _, _, err := b.locks.Lock("a").Acquire(b.t.Context(), core.WaitTime(0)); !errors.Is(err, core.ErrNotAcquired) {
				t.Fatal(err)
			}
		}
		b.free(hold)
		s := b.Snapshot()
		if n := len(s.Incidents); n != 201 || s.IncidentsTotal != 301 || s.Incidents[0].What != "ran unlocked: dry_run" || s.Incidents[n-1].What != "lost" {
			t.Errorf("%d incidents of %d: want 200 unlocked runs and, before them, the loss", n, s.IncidentsTotal)
		}
		if n := len(s.Refusals); n != 201 || s.RefusalsTotal != 301 || s.Refusals[0].What != "busy" || s.Refusals[n-1].What != "backend" {
			t.Errorf("%d refusals of %d: want 200 busy refusals and, before them, the backend failure", n, s.RefusalsTotal)
		}
		body := b.get("/").Body.String()
		for part, want := range map[string]int{">lost</th>": 1, ">backend</th>": 1, ">ran unlocked: dry_run</th>": 20, ">busy</th>": 20} {
			if got := strings.Count(body, part); got != want {
				t.Errorf("the page has %d rows with %s, want %d", got, part, want)
			}
		}
	})
}

// The most frequently acquired keys come first. If there are more keys than the sketch keeps, the true count
// is within the error bound.
func TestSnapshot_HotKeys(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		for i := range 30 {
			for _, name := range []string{"hot", "warm", "cold:" + string(rune('a'+i))} {
				if name == "warm" && i%2 == 0 {
					continue
				}
				_, hold := b.take(b.t.Context(), b.locks.Lock(name))
				b.free(hold)
			}
		}
		keys := b.Snapshot().HotKeys
		if len(keys) != 20 {
			t.Fatalf("%d keys, want 20", len(keys))
		}
		for i, want := range []lockz.HotKey{{Key: "shop:hot", Count: 30}, {Key: "shop:warm", Count: 15}} {
			if keys[i].Key != want.Key || keys[i].Count != want.Count || keys[i].Error != 0 {
				t.Errorf("key %d: got %+v, want %+v", i, keys[i], want)
			}
		}
		for i := range 5_000 {
			observeOne(b.t.Context(), b.Observer(), fmt.Sprintf("shop:once:%d", i), false)
		}
		if k := b.Snapshot().HotKeys[0]; k.Key != "shop:hot" || k.Count > 30 || k.Count+k.Error < 30 || k.Count < 20 {
			t.Errorf("after many other keys: %+v, want shop:hot, 30 times", k)
		}
	}, lockz.WithRawKeys())
}

// The page removes a lost hold that no caller can release any more.
func TestSnapshot_Leak(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	func() {
		b.take(t.Context(), b.locks.Lock("a"), core.LeaseTime(20*time.Millisecond), core.Label("forgets"))
	}()
	for b.Snapshot().HoldsTotal > 0 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // the runtime reports the leak in a goroutine; the embedded Redis and its client need the real clock
	}
	s := b.Snapshot()
	if len(s.Holds) != 0 || s.IncidentsTotal != 2 || s.Incidents[0].What != "leaked" || s.Incidents[1].What != "lost" {
		t.Errorf("got %d held, incidents %+v; want none, and a loss before a leak", len(s.Holds), s.Incidents)
	}
}
