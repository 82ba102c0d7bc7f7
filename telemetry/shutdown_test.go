package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// A client that is closed under a hold has lost nothing: the key stays for its lease. Nobody is
// woken for that, and one warning says which handler was not done.
func TestEndToEndAShutdownThatRunsOutOfTimeLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		server := redistest.New(t)
		locks, err := core.New(server.Client(), core.WithObserver(h.Telemetry.Observer()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		patience, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := locks.Close(patience); !errors.Is(err, core.ErrClosed) {
			t.Fatal(err)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrClosed) || errors.Is(cause, core.ErrLost) {
			t.Errorf("the context ended with %v", cause)
		}
		logs := h.logs.records(t)
		if len(logs) != 1 || logs[0]["level"] != "WARN" || logs[0]["msg"] != "lock left to its lease: the client was closed under its holder" ||
			logs[0]["rule"] != "pay" || logs[0]["key_hash"] != core.KeyHash("order:42") || logs[0]["holder"] != hold.Field() {
			t.Errorf("Close logged %v", logs)
		}
		h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.held", "rule", "pay", "kind", "reentrant")

		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Fatal(err)
		}
		h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "left")
		h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
		if left, ok := h.value(t, "distributed_lock.lease.remaining.ratio", "rule", "pay", "kind", "reentrant"); ok {
			t.Errorf("%v values of what is left of a lease that was not to be renewed", left)
		}
		s := h.span(t, "lock.hold")
		if _, lost := events(s)["lost"]; lost || s.Status().Code != codes.Unset || attrs(s)["outcome"] != "left" {
			t.Errorf("events %v, status %v, attributes %v", events(s), s.Status(), attrs(s))
		}
		if logs := h.logs.records(t); len(logs) != 1 {
			t.Errorf("logged %v", logs)
		}
	})
}
