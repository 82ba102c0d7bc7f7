package telemetry_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
)

// A waiter is linked to the hold that blocked it first and to the hold that blocked it last, if they differ.
// Holders in other processes have no link.
func TestBlockers_FirstAndLast(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, last string
		want        []string
	}{
		"one blocker":                {"a:1", "a:1", []string{"a:1"}},
		"two":                        {"a:1", "a:2", []string{"a:1", "a:2"}},
		"queued behind others first": {"", "a:2", []string{"a:2"}},
		"a stranger first":           {"z:1", "a:2", []string{"a:2"}},
		"a stranger last":            {"a:1", "z:1", []string{"a:1"}},
		"none known":                 {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.holdOf(t.Context(), "a:1")
			h.holdOf(t.Context(), "a:2")
			wantLinks(t, h.wait(t, tt.first, tt.last), tt.want...)
		})
	}
}

// The link leads to the span of the hold, which may be in another trace.
func TestBlockers_LinkLeadsToHoldSpan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	request, server := h.request(t)
	hold, info := h.holdOf(request, "a:1")
	s := h.wait(t, "a:1", "a:1")
	h.HoldEnd(hold, core.HoldResult{HoldInfo: info})
	server.End()
	if got, want := s.Links()[0].SpanContext, h.span(t, "lock.hold").SpanContext(); !got.Equal(want) {
		t.Errorf("linked to %v, want %v", got, want)
	}
	if s.SpanContext().TraceID() == server.SpanContext().TraceID() {
		t.Error("the waiter is in the trace of the holder")
	}
}

// A hold is still found shortly after its end, because the observers of the next holder may run later. After
// many other holds it is forgotten, even if it was lost and never released.
func TestBlockers_EndedHold(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *harness, ctx context.Context, info core.HoldInfo){
		"released": func(h *harness, ctx context.Context, info core.HoldInfo) {
			h.HoldEnd(ctx, core.HoldResult{HoldInfo: info, HandedOff: true})
		},
		"leaked": func(h *harness, ctx context.Context, info core.HoldInfo) {
			h.Leak(ctx, info)
		},
		"lost": func(h *harness, ctx context.Context, info core.HoldInfo) {
			h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrLost})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, came := newHarness(t), time.Now()
			hold, info := h.holdOf(t.Context(), "a:1")
			end(h, hold, info)
			wantLinks(t, h.waitSince(t, came, "", "a:1"), "a:1")
			h.spans.Reset()
			for i := range 300 {
				hold, info := h.holdOf(t.Context(), fmt.Sprintf("b:%d", i))
				h.HoldEnd(hold, core.HoldResult{HoldInfo: info})
			}
			wantLinks(t, h.waitSince(t, came, "a:1", "b:299"), "b:299")
		})
	}
}

// After a Handover the waiter is linked to the hold that continues. It is never linked to a re-entry.
func TestBlockers_HandoverAndReentry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	hold, info := h.holdOf(t.Context(), "a:1")
	next, _ := h.holdOf(hold, "a:1")
	h.HoldEnd(hold, core.HoldResult{HoldInfo: info, Moved: true})
	again := info
	again.Reentrant = true
	h.HoldEnd(h.HoldStart(next, again), core.HoldResult{HoldInfo: again})
	s := h.wait(t, "a:1", "a:1")
	if got, want := s.Links()[0].SpanContext, trace.SpanContextFromContext(next); !got.Equal(want) {
		t.Errorf("linked to %s, want the hold that continues, %s", got.SpanID(), want.SpanID())
	}
}

// Holds that pass the lock on share one holder field. A waiter is linked to the holds that blocked it. The
// last hold stays known when the earlier holds are forgotten.
func TestBlockers_SharedField(t *testing.T) {
	t.Parallel()
	t.Run("last hold stays known", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		first, info := h.holdOf(t.Context(), "a:1")
		later, _ := h.holdOf(t.Context(), "a:1")
		h.HoldEnd(first, core.HoldResult{HoldInfo: info, HandedOff: true})
		for i := range 300 {
			hold, info := h.holdOf(t.Context(), fmt.Sprintf("b:%d", i))
			h.HoldEnd(hold, core.HoldResult{HoldInfo: info})
		}
		s := h.wait(t, "a:1", "a:1")
		wantLinks(t, s, "a:1")
		if got, want := s.Links()[0].SpanContext, trace.SpanContextFromContext(later); !got.Equal(want) {
			t.Errorf("linked to %s, want the hold that has not ended, %s", got.SpanID(), want.SpanID())
		}
	})
	t.Run("first blocker and the hold that passed the lock on", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		first, info := h.holdOf(t.Context(), "a:1")
		a := acquisition("order:42", "ship")
		ctx := h.AcquireStart(t.Context(), a)
		h.Contention(ctx, core.Contention{Acquisition: a, BlockedBy: "a:1"})
		last, lastInfo := h.holdOf(t.Context(), "a:1")
		h.HoldEnd(first, core.HoldResult{HoldInfo: info, HandedOff: true})
		h.HoldEnd(last, core.HoldResult{HoldInfo: lastInfo, HandedOff: true})
		h.AcquireEnd(ctx, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeAcquired, HandedOff: true, Contended: true, BlockedBy: "a:1", Field: "a:1"})
		s := h.span(t, "lock.acquire")
		wantLinks(t, s, "a:1", "a:1")
		if got, want := s.Links()[1].SpanContext, trace.SpanContextFromContext(last); !got.Equal(want) {
			t.Errorf("linked to %s, want the hold that passed the lock on, %s", got.SpanID(), want.SpanID())
		}
	})
	t.Run("hold ended before the waiter came", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		hold, info := h.holdOf(t.Context(), "a:1")
		h.HoldEnd(hold, core.HoldResult{HoldInfo: info, HandedOff: true}) // the hold has a span that does not record
		wantLinks(t, h.waitSince(t, time.Now().Add(time.Second), "a:1", "a:1"))
	})
}

// A hold without a recording span has no link.
func TestBlockers_UnrecordedSpan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, opts := range [][]telemetry.Option{
		{telemetry.WithTracerProvider(tracenoop.NewTracerProvider())},
		{telemetry.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))},
	} {
		other := newHarness(t, opts...)
		other.holdOf(t.Context(), "a:1")
		a := acquisition("order:42", "ship")
		ctx := other.AcquireStart(t.Context(), a)
		other.Contention(ctx, core.Contention{Acquisition: a, BlockedBy: "a:1"})
		other.AcquireEnd(ctx, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Contended: true, BlockedBy: "a:1"})
	}
	wantLinks(t, h.wait(t, "a:1", "a:1"))
}

// Two callers of one process want the lock. The second one is linked to the hold of the first one, which
// passes the lock on to it.
func TestBlockers_PassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		_, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("first"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, next, err := locks.Lock("order:42").Acquire(t.Context(), core.WaitTime(time.Minute), core.Label("second"))
			if err == nil {
				err = next.Release(t.Context())
			}
			done <- err
		}()
		synctest.Wait()
		field := hold.Field()
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		found := 0
		for _, s := range h.spans.Ended() {
			if s.Name() == "lock.acquire" && attrs(s)["rule"] == "second" {
				wantLinks(t, s, field)
				if got := attrs(s); got["holder"] != field || got["blocked_by"] != field {
					t.Errorf("holder %v, blocked_by %v, want %s: the lock was passed on", got["holder"], got["blocked_by"], field)
				}
				found++
			}
		}
		if found != 1 {
			t.Errorf("the second acquisition has %d spans", found)
		}
	})
}

// holdOf begins a hold with a holder field.
func (h *harness) holdOf(ctx context.Context, field string) (context.Context, core.HoldInfo) {
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay"), Field: field}
	return h.HoldStart(ctx, info), info
}

// wait notifies h of a caller. The holder field first blocks the caller when it arrives, and the holder field
// last at the end of its wait. wait returns the span of the caller.
func (h *harness) wait(t *testing.T, first, last string) sdktrace.ReadOnlySpan {
	t.Helper()
	return h.waitSince(t, time.Now(), first, last)
}

// waitSince is like wait, but the caller came at the given time.
func (h *harness) waitSince(t *testing.T, came time.Time, first, last string) sdktrace.ReadOnlySpan {
	t.Helper()
	a := acquisition("order:42", "ship")
	a.Start = came
	ctx := h.AcquireStart(t.Context(), a)
	h.Contention(ctx, core.Contention{Acquisition: a, BlockedBy: first})
	h.AcquireEnd(ctx, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Contended: true, BlockedBy: last})
	return h.span(t, "lock.acquire")
}

// wantLinks compares the holder fields on the links of a span.
func wantLinks(t *testing.T, s sdktrace.ReadOnlySpan, want ...string) {
	t.Helper()
	var got []string
	for _, l := range s.Links() {
		if !l.SpanContext.IsValid() || len(l.Attributes) != 1 || shortName(l.Attributes[0].Key) != "blocked_by" {
			t.Errorf("link to %v with %v", l.SpanContext, l.Attributes)
			continue
		}
		got = append(got, l.Attributes[0].Value.AsString())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("linked to the holds of %q, want %q", got, want)
	}
}
