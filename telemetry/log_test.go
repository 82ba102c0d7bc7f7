package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

func TestLog_LimitPerMessage(t *testing.T) {
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
		time.Sleep(10 * time.Second) // virtual time
		h.Loss(t.Context(), lost)
		logs := h.logs.records(t)
		if len(logs) != 12 || logs[11]["suppressed"] != 990.0 {
			t.Errorf("the last of %d records is %v", len(logs), logs[len(logs)-1])
		}
		h.want(t, 1001, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
	})
}

func TestLog_NoRecordWithoutProblem(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.lock(t, acquisition("order:42", "pay"))
	a := acquisition("order:42", "pay")
	h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Waited: time.Second, Err: core.ErrNotAcquired})
	if logs := h.logs.records(t); len(logs) != 0 {
		t.Errorf("logged %v", logs)
	}
}

func TestLog_LongWait(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		opts   []telemetry.Option
		waited time.Duration
		want   int
	}{
		{"default", nil, telemetry.DefaultLongWait, 1},
		{"shorter", nil, telemetry.DefaultLongWait - 1, 0},
		{"set", []telemetry.Option{telemetry.WithLongWait(time.Second)}, time.Second, 1},
		{"off", []telemetry.Option{telemetry.WithLongWait(0)}, time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, test.opts...)
			r := acquiredResult(acquisition("order:42", "pay"))
			r.Waited, r.BlockedBy = test.waited, "other:1"
			h.AcquireEnd(t.Context(), r)
			logs := h.logs.records(t)
			if len(logs) != test.want {
				t.Fatalf("logged %v", logs)
			}
			if test.want == 1 && (logs[0]["blocked_by"] != "other:1" || logs[0]["outcome"] != "acquired") {
				t.Errorf("logged %v", logs[0])
			}
		})
	}
}

// A lock that is busy for the whole wait time is not an error. The record has no error_type, which would be
// _OTHER, and no error, which would repeat the other keys.
func TestLog_LongWaitForABusyLock(t *testing.T) {
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

func TestLog_HidesKeys(t *testing.T) {
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

func TestLog_ShortKey(t *testing.T) {
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

func TestLog_DisabledLevel(t *testing.T) {
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

func TestLog_BackendChanges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Backend(t.Context(), outage())
	h.Backend(t.Context(), core.BackendChange{ClientID: "client", Available: true, Lasted: time.Minute})
	logs := h.logs.records(t)
	if len(logs) != 2 || logs[0]["level"] != "ERROR" || logs[1]["level"] != "INFO" {
		t.Fatalf("logged %v", logs)
	}
	if text, _ := logs[0]["error"].(string); !strings.Contains(text, "WRONGPASS invalid") || logs[0]["client"] != "client" {
		t.Errorf("logged %v", logs[0])
	}
}

// If the program passes no logger, records about problems that make all requests fail or run unlocked go to
// the default logger. The test is not parallel, because there is one default logger.
func TestLog_AlarmsWithoutALogger(t *testing.T) { //nolint:paralleltest // see above
	logs := &logBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(logs, nil)))
	defer slog.SetDefault(before)

	tel, err := telemetry.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Close() }()
	h := &harness{}
	h.observe(tel)
	h.Backend(t.Context(), outage())
	set := load(t, "rules:\n  - {func: pay, key: pay}\n")
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: core.ErrInvalid})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: load(t, "disabled: true\nrules:\n  - {func: pay, key: pay}\n"), Old: set})
	records := logs.records(t)
	if len(records) != 3 {
		t.Fatalf("logged %v", records)
	}
	for _, r := range records {
		if r["level"] != "ERROR" {
			t.Errorf("logged %v", r)
		}
	}
}

// A client without observers logs the same messages as a Telemetry, so a search or an alert finds them either way. The
// test is not parallel, because there is one default logger.
func TestLog_SameMessagesAsCore(t *testing.T) { //nolint:paralleltest // see above
	logs := &logBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(logs, nil)))
	defer slog.SetDefault(before)

	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		server := redistest.New(t)
		alone, err := core.New(server.Client())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = alone.Close(t.Context()) }()
		observed, err := core.New(server.Client(), core.WithObserver(h.Telemetry.Observer()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = observed.Close(t.Context()) }()
		for _, locks := range []*core.Client{alone, observed} {
			try := func(name string) error {
				return locks.Lock(name).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(2*time.Second))
			}
			if err := server.Client().Set(t.Context(), "text", "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := try("text"); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("the text: %v", err)
			}
			server.Down()
			if err := try("free"); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("without Redis: %v", err)
			}
			server.Up()
			eventually(t, func() bool { return try("free") == nil })
			holdEnds(t, locks)
		}
		want := []string{
			"ERROR key holds something that is not a lock", "ERROR lock backend unavailable", "INFO lock backend available again",
			"ERROR lock lost under its holder", "WARN lock held too long: it is not renewed any more",
			"WARN lock left to its lease: the client was closed under its holder",
		}
		if got := texts(logs.records(t)); !slices.Equal(got, want) {
			t.Errorf("without a Telemetry: %q, want %q", got, want)
		}
		got := slices.DeleteFunc(texts(h.logs.records(t)), func(s string) bool { return s == "WARN lock backend failed" || s == "WARN long wait for a lock" }) // one for each acquisition
		if !slices.Equal(got, want) {
			t.Errorf("with a Telemetry: %q, want %q", got, want)
		}
	})
}

// holdEnds ends holds in each way that is logged, and closes the client.
func holdEnds(t *testing.T, locks *core.Client) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i, end := range []struct {
		opt core.AcquireOption
		do  func()
	}{
		{core.LeaseTime(time.Second), func() { time.Sleep(2 * time.Second) }}, // virtual time
		{core.MaxHold(time.Second), func() { time.Sleep(2 * time.Second) }},   // as above
		{core.AcquireOption{}, func() { _ = locks.Close(over) }},
	} {
		_, hold, err := locks.Lock(fmt.Sprint("ends", i)).Acquire(t.Context(), end.opt)
		if err != nil {
			t.Fatal(err)
		}
		end.do()
		_ = hold.Release(t.Context())
	}
}

// texts returns the levels and messages of records.
func texts(records []map[string]any) (list []string) {
	for _, r := range records {
		list = append(list, fmt.Sprint(r["level"], " ", r["msg"]))
	}
	return list
}
