package telemetry_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
)

func TestLogsAreLimitedPerKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		a := acquisition("order:42", "pay")
		lost := core.Loss{HoldInfo: core.HoldInfo{Acquisition: a}, Cause: core.ErrLost}
		for range 1000 {
			h.Loss(t.Context(), lost)
		}
		h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Err: core.ErrUnavailable})
		if n := len(h.logs.records(t)); n != 11 {
			t.Fatalf("%d records, want 10 losses and 1 backend failure", n)
		}
		time.Sleep(10 * time.Second) // in the time of the bubble
		h.Loss(t.Context(), lost)
		logs := h.logs.records(t)
		if len(logs) != 12 || logs[11]["suppressed"] != 990.0 {
			t.Errorf("the last of %d records is %v", len(logs), logs[len(logs)-1])
		}
		h.want(t, 1001, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
	})
}

func TestNoLogPerCall(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.lock(t, acquisition("order:42", "pay"))
	a := acquisition("order:42", "pay")
	h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Waited: time.Second, Err: core.ErrNotAcquired})
	if logs := h.logs.records(t); len(logs) != 0 {
		t.Errorf("logged %v", logs)
	}
}

func TestLongWaitsAreLogged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		opts   []telemetry.Option
		waited time.Duration
		want   int
	}{
		{"default", nil, telemetry.DefaultLongWait, 1},
		{"shorter", nil, telemetry.DefaultLongWait - 1, 0},
		{"own", []telemetry.Option{telemetry.WithLongWait(time.Second)}, time.Second, 1},
		{"off", []telemetry.Option{telemetry.WithLongWait(0)}, time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, test.opts...)
			r := acquired(acquisition("order:42", "pay"))
			r.Waited, r.BlockedBy = test.waited, "somebody:1"
			h.AcquireEnd(t.Context(), r)
			logs := h.logs.records(t)
			if len(logs) != test.want {
				t.Fatalf("logged %v", logs)
			}
			if test.want == 1 && (logs[0]["blocked_by"] != "somebody:1" || logs[0]["outcome"] != "acquired") {
				t.Errorf("logged %v", logs[0])
			}
		})
	}
}

// A lock that was taken for the whole wait time is no error: the record has no error_type, which
// would be _OTHER, nor a text that says what its other keys say.
func TestLongWaitForATakenLockIsNoError(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.AcquireEnd(t.Context(), core.AcquireResult{
		Acquisition: acquisition("order:42", "pay"), Outcome: core.OutcomeBusy, Waited: time.Minute, Err: core.ErrNotAcquired, BlockedBy: "client:2",
	})
	logs := h.logs.records(t)
	if len(logs) != 1 || logs[0]["error_type"] != nil || logs[0]["error"] != nil || logs[0]["outcome"] != "busy" {
		t.Errorf("logged %v, want one record of a busy lock, without an error", logs)
	}
}

func TestLogsNameNoKey(t *testing.T) {
	t.Parallel()
	const key = `order:"42"`
	for _, test := range []struct {
		name string
		keys int
		err  error
	}{
		{"in a cause", 1, fmt.Errorf("%w: no answer about %q", core.ErrUnavailable, key)},
		{"quoted", 1, &core.NotAcquiredError{Key: key, Cause: core.ErrUnavailable}},
		{"several", 2, errors.New("no answer about " + key)},
		{"quoted by redis", 1, fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR unknown command 'evalsha', with args beginning with: 'aa' '1' 'order:\"42\"' "))},
		{"cut off by redis", 1, fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR unknown command 'evalsha', with args beginning with: 'aa' '1' 'order:\"4"))},
		{"escaped by redis", 1, fmt.Errorf("%w: %w", core.ErrUnavailable, reply(`ERR what is "order:\x2242\x22"`))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hashed, raw := newHarness(t), newHarness(t, telemetry.WithRawKeys())
			a := acquisition(key, "pay")
			a.Keys = test.keys
			for _, h := range []*harness{hashed, raw} {
				h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Err: test.err})
			}
			text := fmt.Sprint(hashed.logs.records(t))
			if strings.Contains(text, "order") || !strings.Contains(text, core.KeyHash(key)) {
				t.Errorf("hashed: %s", text)
			}
			if got := raw.logs.records(t)[0]; got["key"] != key || got["error"] != test.err.Error() {
				t.Errorf("raw: %v", got)
			}
		})
	}
}

// reply is an error that Redis has answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestShortKeysLeaveErrorsReadable(t *testing.T) {
	t.Parallel()
	const key = "n"
	h := newHarness(t)
	h.AcquireEnd(t.Context(), core.AcquireResult{
		Acquisition: acquisition(key, "pay"), Outcome: core.OutcomeBackend,
		Err: &core.NotAcquiredError{Key: key, Cause: core.ErrUnavailable},
	})
	want := fmt.Sprintf("core: lock %q not acquired after 0s: redis unavailable", core.KeyHash(key))
	if got := h.logs.records(t)[0]["error"]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLevelsThatAreOffAreNotLimited(t *testing.T) {
	t.Parallel()
	logs := &logBuffer{}
	level := new(slog.LevelVar)
	level.Set(slog.LevelError + 1)
	h := newHarness(t, telemetry.WithLogger(slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: level}))))
	lost := core.Loss{HoldInfo: core.HoldInfo{Acquisition: acquisition("order:42", "pay")}, Cause: core.ErrLost}
	for range 100 {
		h.Loss(t.Context(), lost)
	}
	level.Set(slog.LevelInfo)
	h.Loss(t.Context(), lost)
	if got := logs.records(t); len(got) != 1 || got[0]["suppressed"] != nil {
		t.Errorf("logged %v", got)
	}
}
