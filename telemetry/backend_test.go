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

func outage() core.BackendChange {
	return core.BackendChange{
		ClientID: "client", Cause: fmt.Errorf("%w: %w", core.ErrUnavailable, reply("WRONGPASS invalid username-password pair or user is disabled.")),
	}
}

func TestBackendChangesAreLogged(t *testing.T) {
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

// What makes all requests fail, or run unlocked, is not lost because nobody has given a
// logger. It is not parallel: there is one default logger.
func TestAlarmsGoToTheDefaultLogger(t *testing.T) { //nolint:paralleltest // see above
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
	set := mustLoad(t, "rules:\n  - {func: pay, key: pay}\n")
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: core.ErrInvalid})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: mustLoad(t, "disabled: true\nrules:\n  - {func: pay, key: pay}\n"), Old: set})
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

// What a client logs that nobody observes is what a Telemetry logs in its place: who looks for a
// text, or has an alert on it, finds it with both. It is not parallel: there is one default logger.
func TestLogsAreTheSameWithoutTelemetry(t *testing.T) { //nolint:paralleltest // see above
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
				t.Errorf("a text: %v", err)
			}
			server.Down()
			if err := try("free"); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("without Redis: %v", err)
			}
			server.Up()
			eventually(t, func() bool { return try("free") == nil })
		}
		want := []string{
			"ERROR key holds something that is not a lock", "ERROR lock backend unavailable", "INFO lock backend available again",
		}
		if got := texts(logs.records(t)); !slices.Equal(got, want) {
			t.Errorf("without: %q, want %q", got, want)
		}
		got := slices.DeleteFunc(texts(h.logs.records(t)), func(s string) bool { return s == "WARN lock backend failed" }) // of each acquisition
		if !slices.Equal(got, want) {
			t.Errorf("with: %q, want %q", got, want)
		}
	})
}

// texts are the levels and messages of records.
func texts(records []map[string]any) (list []string) {
	for _, r := range records {
		list = append(list, fmt.Sprint(r["level"], " ", r["msg"]))
	}
	return list
}
