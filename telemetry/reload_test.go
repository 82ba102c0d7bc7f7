package telemetry_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

func TestReload_CountsAndTimestamp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("pay"), Key: "pay"}})
	if err != nil {
		t.Fatal(err)
	}
	first := ruleset.Reload{File: "locks.yaml", Hash: "aaa", Time: time.UnixMilli(1500), Set: set}
	h.Reload(first)
	h.want(t, 0, "distributed_lock.reloads", "outcome", "refused")
	second := first
	second.Hash, second.Time = "bbb", time.Unix(3, 0)
	h.Reload(second)
	h.Reload(ruleset.Reload{File: "locks.yaml", Hash: "ccc", Time: time.Unix(4, 0), Set: set, Err: errors.New("locks.yaml:3:1: no key")})

	h.want(t, 3, "distributed_lock.reload.timestamp", "hash", "bbb")
	for _, gone := range []string{"aaa", "ccc"} {
		if _, exists := h.value(t, "distributed_lock.reload", "hash", gone); exists {
			t.Errorf("the hash %s has a series although it is not in force", gone)
		}
	}
	h.want(t, 2, "distributed_lock.reloads", "outcome", "applied")
	h.want(t, 1, "distributed_lock.reloads", "outcome", "refused")
	records := h.logs.records(t)
	if len(records) != 3 || records[2]["level"] != "ERROR" || !strings.Contains(records[2]["error"].(string), "locks.yaml:3:1") {
		t.Errorf("got records %v", records)
	}
}

// The end of a refusal goes to the same logger as the refusal. Without WithLogger that is the default logger,
// which gets no records of other reloads.
func TestReload_EndOfRefusal(t *testing.T) { //nolint:paralleltest // there is one default logger
	set := load(t, "rules:\n  - {func: pay, key: pay}\n")
	good := ruleset.Reload{File: "locks.yaml", Hash: "aaa", Set: set, Old: set}
	bad, other := good, good
	bad.Err, other.File = errors.New("locks.yaml:3:1: no key"), "other.yaml"
	for name, own := range map[string]bool{"with a logger": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			logs := &logBuffer{}
			logger := slog.New(slog.NewJSONHandler(logs, nil))
			var opts []telemetry.Option
			if own {
				opts = append(opts, telemetry.WithLogger(logger))
			} else {
				defer slog.SetDefault(slog.Default())
				slog.SetDefault(logger)
			}
			tel, err := telemetry.New(opts...)
			if err != nil {
				t.Fatal(err)
			}
			h := &harness{}
			h.observe(tel)
			for _, r := range []ruleset.Reload{good, bad, bad, other, good, good} {
				h.Reload(r)
			}
			var got []string
			for _, r := range logs.records(t) {
				if r["msg"] != "lock rules loaded" || !own {
					got = append(got, r["level"].(string)+" "+r["msg"].(string)+" "+r["hash"].(string))
				}
			}
			const refused = "ERROR lock rules refused: the old ones stay in force aaa"
			if want := []string{refused, refused, "INFO lock rules loaded; the refusal has ended aaa"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A reload that lets endpoints run unlocked is logged as an error, like a refusal.
func TestReload_EndpointsUnlocked(t *testing.T) {
	t.Parallel()
	full := load(t, "rules:\n  - {func: pay, key: pay}\n  - {func: ship, key: ship}\n")
	for name, test := range map[string]struct {
		next  string
		level string
		attr  string
		text  string
	}{
		"same":     {"rules:\n  - {func: pay, key: pay}\n  - {func: ship, key: ship}\n", "INFO", "rules", "lock rules loaded"},
		"disabled": {"disabled: true\nrules:\n  - {func: pay, key: pay}\n  - {func: ship, key: ship}\n", "ERROR", "disabled", "lock rules loaded, and endpoints run unlocked"},
		"dry run":  {"dry_run: true\nrules:\n  - {func: pay, key: pay}\n  - {func: ship, key: ship}\n", "ERROR", "dry_run", "lock rules loaded, and endpoints run unlocked"},
		"removed":  {"rules:\n  - {func: pay, key: pay}\n", "ERROR", "unlocked", "lock rules loaded, and endpoints run unlocked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.Reload(ruleset.Reload{File: "locks.yaml", Hash: "bbb", Set: load(t, test.next), Old: full})
			records := h.logs.records(t)
			if len(records) != 1 || records[0]["level"] != test.level || records[0]["msg"] != test.text || records[0][test.attr] == nil {
				t.Errorf("got %v", records)
			}
		})
	}
}

// One record reports both the end of the refusal and the endpoints that run unlocked.
func TestReload_EndpointsUnlockedAfterRefusal(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	full := load(t, "rules:\n  - {func: pay, key: pay}\n")
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: full, Old: full, Err: errors.New("locks.yaml:3:1: no key")})
	h.Reload(ruleset.Reload{File: "locks.yaml", Set: load(t, "rules: []\n"), Old: full})
	const want = "lock rules loaded, and endpoints run unlocked; the refusal has ended"
	if records := h.logs.records(t); len(records) != 2 || records[1]["level"] != "ERROR" || records[1]["msg"] != want {
		t.Errorf("got %v, want %q", records, want)
	}
}

// The problems of a refused file are logged as a list, one line for each.
func TestReload_Problems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, err := ruleset.Load("locks.yaml", []byte("rules:\n  - func: pay\n    kye: a\n  - func: ship\n    key: b\n    wait_time: 10ns\n"))
	h.Reload(ruleset.Reload{File: "locks.yaml", Err: err})
	problems, _ := h.logs.records(t)[0]["problems"].([]any)
	if len(problems) < 2 {
		t.Fatalf("got problems %q", problems)
	}
	for _, p := range problems {
		if text, _ := p.(string); !strings.HasPrefix(text, "locks.yaml:") || strings.Contains(text, "\n") {
			t.Errorf("got %q, want its place and the problem, in one line", text)
		}
	}
}
