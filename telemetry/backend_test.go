package telemetry_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
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
	h.ObserveBackend(t.Context(), outage())
	h.ObserveBackend(t.Context(), core.BackendChange{ClientID: "client", Available: true, Lasted: time.Minute})
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
	tel.ObserveBackend(t.Context(), outage())
	set := mustLoad(t, "rules:\n  - {func: pay, key: pay}\n")
	tel.ObserveReload(ruleset.Reload{File: "locks.yaml", Set: set})
	tel.ObserveReload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: core.ErrInvalid})
	tel.ObserveReload(ruleset.Reload{File: "locks.yaml", Set: mustLoad(t, "disabled: true\nrules:\n  - {func: pay, key: pay}\n"), Old: set})
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
