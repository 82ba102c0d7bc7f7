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

// Each record has the level and the keys that the package comment lists for it, and each one
// that is listed is written.
func TestLogsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	want := documentedLogs(t)
	for _, opts := range [][]lockz.Option{nil, {lockz.WithRawKeys()}} {
		inBubble(t, func(b *bed) {
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

// logged is a row of the table of records.
type logged struct {
	level string
	keys  []string
}

func checkRecord(t *testing.T, want logged, r map[string]any, raw bool) {
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
				delete(expected, key) // the key takes the place of its hash
			}
		}
	}
	if got := slices.Sorted(maps.Keys(expected)); !slices.Equal(keys, got) {
		t.Errorf("%q has the keys %q, documented are %q", r["msg"], keys, got)
	}
}

// documentedLogs reads the table of records, by their messages.
func documentedLogs(t *testing.T) map[string]logged {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "level  keys\n")
	if !ok {
		t.Fatal("doc.go has no table of log records")
	}
	rows := map[string]logged{}
	for line := range strings.Lines(table) {
		columns := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(strings.TrimPrefix(line, "//\t")), -1)
		if len(columns) != 3 {
			break
		}
		rows[columns[0]] = logged{columns[1], strings.Fields(columns[2])}
	}
	return rows
}

// logEverything has a caller wait for itself, and an operator free a lock, and fail to.
func logEverything(b *bed) {
	b.t.Helper()
	ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
	done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second))
	_ = done()
	ticket := b.tickets("/", "X-Operator", "yes")[0]
	b.free(hold)
	_, hold = b.take(b.t.Context(), b.locks.Lock("a"))
	b.press(ticket, "X-Operator", "yes") // it is another holder's by now
	b.press(b.tickets("/", "X-Operator", "yes")[0], "X-Operator", "yes")
	_ = hold.Release(b.t.Context()) // it is lost
}
