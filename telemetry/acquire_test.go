package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/interlock-go/interlock/core"
)

func TestAcquire_Busy(t *testing.T) {
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

func TestAcquire_BackendFailure(t *testing.T) {
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

func TestAcquire_WaitersAndHandOff(t *testing.T) {
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
			t.Errorf("%d spans have the event handed_over, want the hold that passed the lock on and the acquisition that got it", handed)
		}
	})
}
