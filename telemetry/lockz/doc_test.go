package lockz_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// Each log record has the level and the keys of its row in doc.go, and each row of the table is logged.
func TestDoc_Logs(t *testing.T) {
	t.Parallel()
	want := documentedLogs(t)
	for _, opts := range [][]lockz.Option{nil, {lockz.WithRawKeys()}} {
		run(t, func(b *fixture) {
			logEverything(b)
			for message, row := range want {
				logged := b.logs.records(b.t, message)
				if len(logged) == 0 {
					b.t.Errorf("%q was not logged", message)
				}
				for _, r := range logged {
					checkRecord(b.t, row, r, opts != nil)
				}
			}
		}, append(opts, lockz.WithAuthorizer(operator))...)
	}
}

// logRow is a row of the table of log records.
type logRow struct {
	level string
	keys  []string
}

func checkRecord(t *testing.T, want logRow, r map[string]any, raw bool) {
	t.Helper()
	if r["level"] != want.level {
		t.Errorf("%q has the level %v, want %s", r["msg"], r["level"], want.level)
	}
	var keys []string
	for key, value := range r {
		switch group, is := value.(map[string]any); {
		case is:
			for inner := range group {
				keys = append(keys, key+"."+inner)
			}
		case !slices.Contains([]string{"time", "level", "msg"}, key):
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	expected := map[string]bool{}
	for _, key := range want.keys {
		optional := strings.HasPrefix(key, "[")
		if key = strings.Trim(key, "[]"); optional && !raw {
			continue
		}
		expected[key] = true
	}
	if raw {
		for key := range expected {
			if name, ok := strings.CutSuffix(key, "_hash"); ok && expected[name] {
				delete(expected, key) // the key replaces its hash
			}
		}
	}
	if got := slices.Sorted(maps.Keys(expected)); !slices.Equal(keys, got) {
		t.Errorf("%q has the keys %q, want %q as documented", r["msg"], keys, got)
	}
}

// documentedLogs reads the table of log records in doc.go, by message.
func documentedLogs(t *testing.T) map[string]logRow {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "level  keys\n")
	if !ok {
		t.Fatal("doc.go has no table of log records")
	}
	rows := map[string]logRow{}
	for line := range strings.Lines(table) {
		columns := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(strings.TrimPrefix(line, "//\t")), -1)
		if len(columns) != 3 {
			break
		}
		rows[columns[0]] = logRow{columns[1], strings.Fields(columns[2])}
	}
	return rows
}

// logEverything writes every record: a caller waits for itself, and an operator releases a lock and fails to release
// another.
func logEverything(b *fixture) {
	b.t.Helper()
	ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
	done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second))
	_ = done()
	ticket := b.tickets("/", "X-Operator", "yes")[0]
	b.free(hold)
	_, hold = b.take(b.t.Context(), b.locks.Lock("a"))
	b.press(ticket, "X-Operator", "yes") // another holder has the lock
	b.press(b.tickets("/", "X-Operator", "yes")[0], "X-Operator", "yes")
	_ = hold.Release(b.t.Context()) // the hold is lost
}
