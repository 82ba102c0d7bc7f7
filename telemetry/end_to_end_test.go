package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/codes"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// newLocks is a lock client on an embedded Redis, observed by h.
func newLocks(t *testing.T, h *harness, opts ...core.Option) (*core.Client, *redistest.Server) {
	t.Helper()
	server := redistest.New(t)
	rdb := server.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	locks, err := core.New(rdb, append(opts, core.WithObserver(h.Telemetry.Observer()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Error(err)
		}
	})
	return locks, server
}

func TestEndToEndSpansAreChildrenOfTheRequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h, core.WithPrefix("shop:"))

	ctx, request := h.request(t)
	err := locks.Lock("order:42").Do(ctx, func(ctx context.Context) error {
		_, work := h.tracer.Start(ctx, "work")
		work.End()
		return nil
	}, core.WaitTime(time.Second), core.Label("pay"))
	request.End()
	if err != nil {
		t.Fatal(err)
	}

	acquire, hold, work := h.span(t, "lock.acquire"), h.span(t, "lock.hold"), h.span(t, "work")
	parent := request.SpanContext().SpanID()
	if acquire.Parent().SpanID() != parent || hold.Parent().SpanID() != parent {
		t.Error("lock.acquire and lock.hold are not both children of the request's span")
	}
	if work.Parent().SpanID() != hold.SpanContext().SpanID() {
		t.Error("the work is not below lock.hold")
	}
	wantAttrs(t, acquire, map[string]any{
		"rule": "pay", "kind": "reentrant", "outcome": "acquired", "attempts": int64(1), "reentry": false,
		"key_hash": core.KeyHash("shop:order:42"), "holder": attrs(hold)["holder"],
	})
	wantAttrs(t, hold, map[string]any{
		"rule": "pay", "kind": "reentrant", "outcome": "released", "reentry": false,
		"key_hash": core.KeyHash("shop:order:42"), "holder": attrs(acquire)["holder"],
	})
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "acquired")
	h.want(t, 1, "distributed_lock.acquire.duration", "rule", "pay", "kind", "reentrant")
	h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "released")
	h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
}

func TestEndToEndReentryAndNestedLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		err := locks.Lock("a").Do(t.Context(), func(ctx context.Context) error {
			return locks.Lock("a").Do(ctx, func(ctx context.Context) error {
				return locks.Lock("b").Do(ctx, func(context.Context) error {
					h.want(t, 1, "distributed_lock.held", "rule", "outer", "kind", "reentrant")
					h.want(t, 0, "distributed_lock.held", "rule", "inner", "kind", "reentrant")
					return nil
				}, core.Label("other-lock"))
			}, core.Label("inner"))
		}, core.Label("outer"))
		if err != nil {
			t.Fatal(err)
		}
		parents := make(map[string]string)
		ids := make(map[string]string)
		for _, s := range h.spans.Ended() {
			name := s.Name() + " " + attrs(s)["rule"].(string)
			ids[s.SpanContext().SpanID().String()] = name
			parents[name] = s.Parent().SpanID().String()
		}
		for child, parent := range map[string]string{
			"lock.hold inner": "lock.hold outer", "lock.acquire inner": "lock.hold outer",
			"lock.hold other-lock": "lock.hold inner", "lock.acquire other-lock": "lock.hold inner",
		} {
			if got := ids[parents[child]]; got != parent {
				t.Errorf("%s is below %q, want %q", child, got, parent)
			}
		}
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "inner", "kind", "reentrant", "outcome", "reentered")
		h.want(t, 0, "distributed_lock.held", "rule", "outer", "kind", "reentrant")
	})
}

func TestEndToEndABusyAnswerIsNoError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, server := newLocks(t, h)
		stranger := server.Take("order:42", time.Minute)

		_, _, err := locks.Lock("order:42").Acquire(t.Context(), core.WaitTime(0), core.Label("pay"))
		if !errors.Is(err, core.ErrNotAcquired) {
			t.Fatal(err)
		}
		s := h.span(t, "lock.acquire")
		if s.Status().Code != codes.Unset {
			t.Errorf("status %v", s.Status())
		}
		if got := events(s)["contended"]["blocked_by"]; got != stranger {
			t.Errorf("contended by %v", got)
		}
		wantAttrs(t, s, map[string]any{
			"rule": "pay", "kind": "reentrant", "outcome": "busy", "attempts": int64(1), "reentry": false,
			"key_hash": core.KeyHash("order:42"), "blocked_by": stranger,
		})
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "busy")
		h.want(t, 0, "distributed_lock.waiters", "rule", "pay", "kind", "reentrant")
		if _, exists := h.value(t, "distributed_lock.acquire.duration", "rule", "pay", "kind", "reentrant"); exists {
			t.Error("a refused attempt counts as a round trip")
		}
		if logs := h.logs.records(t); len(logs) != 0 {
			t.Errorf("logged %v", logs)
		}
	})
}

func TestEndToEndABackendFailureIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, server := newLocks(t, h)
		server.Down()

		_, _, err := locks.Lock("order:42").Acquire(t.Context(), core.WaitTime(5*time.Second), core.Label("pay"))
		if !errors.Is(err, core.ErrUnavailable) {
			t.Fatal(err)
		}
		s := h.span(t, "lock.acquire")
		if s.Status().Code != codes.Error || attrs(s)["error.type"] == nil || len(s.Events()) != 0 {
			t.Errorf("status %v, attributes %v, events %v", s.Status(), attrs(s), s.Events())
		}
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "backend")
		logs := h.logs.records(t)
		if len(logs) != 2 || logs[0]["msg"] != "lock backend unavailable" || logs[1]["msg"] != "lock backend failed" || logs[1]["rule"] != "pay" {
			t.Errorf("logged %v", logs)
		}
	})
}

func TestEndToEndWaitersAndHandOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)

		_, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			done <- locks.Lock("order:42").Do(t.Context(), func(context.Context) error { return nil }, core.Label("pay"))
		}()
		eventually(t, func() bool {
			n, _ := h.value(t, "distributed_lock.waiters", "rule", "pay", "kind", "reentrant")
			return n == 1
		})
		if age, ok := h.value(t, "distributed_lock.oldest_wait", "client.id", locks.ID()); !ok || age <= 0 {
			t.Errorf("oldest_wait = %v (exists: %t)", age, ok)
		}
		h.want(t, 1, "distributed_lock.client.info", "client.id", locks.ID())
		if err := errors.Join(hold.Release(t.Context()), <-done); err != nil {
			t.Fatal(err)
		}
		h.want(t, 0, "distributed_lock.waiters", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.handoffs", "rule", "pay", "kind", "reentrant")
		handed := 0
		for _, s := range h.spans.Ended() {
			if _, ok := events(s)["handed_over"]; ok {
				handed++
			}
		}
		if handed != 2 {
			t.Errorf("%d spans say handed_over, want the giver's hold and the taker's acquire", handed)
		}
	})
}

func TestEndToEndALossIsCountedOnceAndLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, server := newLocks(t, h)
		ctx, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.LeaseTime(50*time.Millisecond), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		server.Expire("order:42")
		<-ctx.Done()
		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Fatal(err)
		}
		eventually(t, func() bool { return len(h.logs.records(t)) > 0 }) // the observer's last deed, after the context has ended
		h.want(t, 1, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "lost")
		s := h.span(t, "lock.hold")
		if _, ok := events(s)["lost"]; !ok || s.Status().Code != codes.Error || attrs(s)["error.type"] != "lost" {
			t.Errorf("events %v, status %v, attributes %v", events(s), s.Status(), attrs(s))
		}
		logs := h.logs.records(t)
		if len(logs) != 1 || logs[0]["msg"] != "lock lost under its holder" || logs[0]["key_hash"] != core.KeyHash("order:42") {
			t.Errorf("logged %v", logs)
		}
	})
}

// eventually waits for what the other goroutines do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("never")
		}
	}
}
