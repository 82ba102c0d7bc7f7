package telemetry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

// TestDoc_Metrics compares the table of metrics in doc.go with [telemetry.Metrics]. If it fails, it prints
// the right table.
func TestDoc_Metrics(t *testing.T) {
	t.Parallel()
	metrics := [][]string{{"metric", "type", "unit", "labels", "meaning"}}
	for _, m := range telemetry.Metrics() {
		var labels []string
		for _, l := range m.Labels {
			labels = append(labels, strings.TrimPrefix(l, "distributed_lock."))
		}
		metrics = append(metrics, []string{m.Name, m.Type, m.Unit, cmp.Or(strings.Join(labels, " "), "none"), m.Meaning})
	}
	if want := commentTable(metrics); !strings.Contains(docText(t), want) {
		t.Errorf("doc.go lacks this table:\n%s", want)
	}
}

// commentTable returns a table in the form of a comment.
func commentTable(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	return "//\t" + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n//\t") + "\n"
}

// TestDoc_Spans causes every event and compares the attributes and events in doc.go with those that the spans
// have.
func TestDoc_Spans(t *testing.T) {
	t.Parallel()
	h, raw := newHarness(t), newHarness(t, telemetry.WithRawKeys())
	h.notifyAll(t)
	raw.notifyAll(t)
	got := map[string]bool{}
	see := func(attrs []attribute.KeyValue) {
		for _, kv := range attrs {
			got[string(kv.Key)] = true
		}
	}
	for _, s := range append(h.spans.Ended(), raw.spans.Ended()...) {
		see(s.Attributes())
		for _, e := range s.Events() {
			got[e.Name] = true
			see(e.Attributes)
		}
		for _, l := range s.Links() {
			see(l.Attributes)
		}
	}
	text := docText(t)
	want := append(firstWords(t, text, "attribute "), firstWords(t, text, "event ")...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(got)); !slices.Equal(got, want) {
		t.Errorf("spans have\n%q\ndocumented are\n%q", got, want)
	}
}

// firstWords returns the first words of the rows of the table whose header begins with a text.
func firstWords(t *testing.T, text, begin string) (rows []string) {
	t.Helper()
	_, table, ok := strings.Cut(text, "//\t"+begin)
	if !ok {
		t.Fatalf("doc.go has no table that begins with %q", begin)
	}
	for line := range strings.Lines(table[strings.Index(table, "\n")+1:]) {
		row, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			return rows
		}
		rows = append(rows, strings.Fields(row)[0])
	}
	return rows
}

// TestDoc_Outcomes compares the outcomes in doc.go with the possible outcomes.
func TestDoc_Outcomes(t *testing.T) {
	t.Parallel()
	text := docText(t)
	acquire := []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy), "debounced",
		string(core.OutcomeOverload), string(core.OutcomeBackend), string(core.OutcomeKey), string(core.OutcomeCanceled),
	}
	hold := []string{"released", "left", "lost", "held_too_long", "failed", "leaked"}
	flat := strings.ReplaceAll(text, "\n// ", " ")
	for what, list := range map[string]struct {
		pattern string
		want    []string
	}{
		"of lock.acquire":  {`acquire: ([a-z_, ]+);`, acquire},
		"of lock.hold":     {`; hold: ([a-z_, ]+)`, append(hold[:6:6], "moved")},
		"of wait.duration": {`outcomes of wait\.duration are ([a-z_, ]+)`, acquire},
		"of hold.duration": {`outcomes of hold\.duration are ([a-z_, ]+)`, hold},
	} {
		found := regexp.MustCompile(list.pattern).FindStringSubmatch(flat)
		if found == nil {
			t.Errorf("doc.go has no list of outcomes %s", what)
			continue
		}
		got := strings.Split(strings.ReplaceAll(strings.TrimSpace(found[1]), " and ", ", "), ", ")
		slices.Sort(got)
		if slices.Sort(list.want); !slices.Equal(got, list.want) {
			t.Errorf("outcomes %s: documented %q, want %q", what, got, list.want)
		}
	}
}

// record is a row of the table of log records: a level and sorted keys.
type record struct{ level, keys string }

// TestDoc_Logs writes every log record with all of its keys, and compares levels and keys with the table in doc.go.
func TestDoc_Logs(t *testing.T) {
	t.Parallel()
	want, got := documentedLogs(t), map[string]record{}
	for _, r := range logEverything(t).logs.records(t) {
		msg, _ := r["msg"].(string)
		level, _ := r["level"].(string)
		row := rowOf(want, msg)
		if row == "" {
			t.Errorf("doc.go has no row for %q", msg)
			continue
		}
		for _, key := range []string{"time", "msg", "level", "suppressed"} {
			delete(r, key)
		}
		if before, again := got[row]; again && before.level != level {
			t.Errorf("%q has the levels %s and %s", msg, before.level, level)
		}
		keys := slices.AppendSeq(strings.Fields(got[row].keys), maps.Keys(r)) // the keys of all records of the row
		slices.Sort(keys)
		got[row] = record{level, strings.Join(slices.Compact(keys), " ")}
	}
	for row := range want {
		if got[row] != want[row] {
			t.Errorf("%q has %+v, documented is %+v", row, got[row], want[row])
		}
	}
}

// rowOf returns the longest message in the table that is a prefix of msg.
func rowOf(rows map[string]record, msg string) string {
	found := ""
	for row := range rows {
		if strings.HasPrefix(msg, row) && len(row) > len(found) {
			found = row
		}
	}
	return found
}

// documentedLogs reads the table of log records in doc.go, by message.
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

// logEverything logs every record once, with all of its keys.
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
	h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrHeldTooLong})
	h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrClosed})
	h.Leak(ctx, info)
	h.HoldEnd(ctx, core.HoldResult{HoldInfo: info, Err: core.ErrUnavailable})
	h.Renewal(ctx, core.Renewal{HoldInfo: info, Err: core.ErrUnavailable})
	end(core.AcquireResult{Outcome: core.OutcomeBackend, Err: core.ErrUnavailable})
	end(core.AcquireResult{Outcome: core.OutcomeBackend, Err: reply("WRONGTYPE Operation against a key holding the wrong kind of value")})
	end(core.AcquireResult{Outcome: core.OutcomeCanceled, Err: context.DeadlineExceeded, Waited: time.Minute, BlockedBy: "client:2"})
	h.Backend(ctx, outage())
	h.Backend(ctx, core.BackendChange{ClientID: "client", Available: true, Lasted: time.Minute})
	set := load(t, "rules:\n  - {func: pay, key: pay}\n")
	off := load(t, "disabled: true\nrules:\n  - {func: pay, key: pay}\n")
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

// splitColumns splits a line at two or more spaces.
func splitColumns(line string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
}

func docText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
