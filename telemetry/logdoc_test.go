package telemetry_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

// record is one kind of log record: its level, and its keys in order.
type record struct{ level, keys string }

// TestLogsAreThoseOfTheDocumentation drives every record that is logged, with everything that it
// can say, and compares its level and keys with the table of doc.go.
func TestLogsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	want, got := documentedLogs(t), map[string]record{}
	for _, r := range logEverything(t).logs.records(t) {
		msg, _ := r["msg"].(string)
		level, _ := r["level"].(string)
		row := documentedAs(want, msg)
		if row == "" {
			t.Errorf("doc.go has no row for %q", msg)
			continue
		}
		for _, key := range []string{"time", "msg", "level", "suppressed"} {
			delete(r, key)
		}
		if before, again := got[row]; again && before.level != level {
			t.Errorf("%q is %s and %s", msg, before.level, level)
		}
		keys := slices.AppendSeq(strings.Fields(got[row].keys), maps.Keys(r)) // of all records of the row
		slices.Sort(keys)
		got[row] = record{level, strings.Join(slices.Compact(keys), " ")}
	}
	for row := range want {
		if got[row] != want[row] {
			t.Errorf("%q has %+v, documented is %+v", row, got[row], want[row])
		}
	}
}

// documentedAs is the row of a message: the beginning of it, as long as possible.
func documentedAs(rows map[string]record, msg string) string {
	found := ""
	for row := range rows {
		if strings.HasPrefix(msg, row) && len(row) > len(found) {
			found = row
		}
	}
	return found
}

// documentedLogs reads the table of records, by their messages.
func documentedLogs(t *testing.T) map[string]record {
	t.Helper()
	_, table, ok := strings.Cut(docText(t), "level  keys\n")
	if !ok {
		t.Fatal("doc.go has no table of log records")
	}
	rows := map[string]record{}
	for line := range strings.Lines(table) {
		columns := splitColumns(strings.TrimPrefix(line, "//\t"))
		if len(columns) != 3 {
			break
		}
		keys := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(columns[2]))
		slices.Sort(keys)
		rows[columns[0]] = record{columns[1], strings.Join(keys, " ")}
	}
	return rows
}

// logEverything has everything logged once, with all that can be said of it.
func logEverything(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, telemetry.WithLongWait(time.Second))
	ctx := t.Context()
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay"), Field: "client:1"}
	end := func(r core.AcquireResult) {
		r.Acquisition = info.Acquisition
		h.AcquireEnd(h.AcquireStart(ctx, r.Acquisition), r)
	}
	h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrLost})
	h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrClosed})
	h.Leak(ctx, info)
	h.HoldEnd(ctx, core.HoldResult{HoldInfo: info, Err: core.ErrUnavailable})
	h.Renewal(ctx, core.Renewal{HoldInfo: info, Err: core.ErrUnavailable})
	end(core.AcquireResult{Outcome: core.OutcomeBackend, Err: core.ErrUnavailable})
	end(core.AcquireResult{Outcome: core.OutcomeBackend, Err: reply("WRONGTYPE Operation against a key holding the wrong kind of value")})
	end(core.AcquireResult{Outcome: core.OutcomeCanceled, Err: context.DeadlineExceeded, Waited: time.Minute, BlockedBy: "client:2"})
	h.Backend(ctx, outage())
	h.Backend(ctx, core.BackendChange{ClientID: "client", Available: true, Lasted: time.Minute})
	set := mustLoad(t, "rules:\n  - {func: pay, key: pay}\n")
	off := mustLoad(t, "disabled: true\nrules:\n  - {func: pay, key: pay}\n")
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: off, Old: set})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: core.ErrInvalid})
	_, invalid := ruleset.Load("locks.yaml", []byte("rules:\n  - {func: pay, kye: pay}\n"))
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: invalid})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: set, Old: set, Err: errors.New("a subscriber panicked\ngoroutine 1 [running]:\nmain.main()")})
	h.Warning(&ruleset.Problem{
		Source: ruleset.Source{File: "locks.yaml", Line: 2, Column: 5}, Endpoint: ruleset.Func("pay"), Rule: "pay", Field: "key",
		Message: "odd: write even",
	})
	return h
}

// splitColumns cuts at two or more spaces.
func splitColumns(line string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
}
