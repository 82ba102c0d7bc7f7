package history_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/history"
)

// The environment variables that configure a run.
const (
	durationEnv = "INTERLOCK_HISTORY"         // how long the processes run, such as 60s
	bubbleEnv   = "INTERLOCK_HISTORY_BUBBLE"  // how long the bubble runs in virtual time, such as 1h
	seedEnv     = "INTERLOCK_HISTORY_SEED"    // repeats a run
	mutantsEnv  = "INTERLOCK_HISTORY_MUTANTS" // 1: build three mutants and check that a run catches each; all: all mutants
	workerEnv   = "INTERLOCK_HISTORY_WORKER"  // makes this binary a worker; set by the test
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the faults cause thousands of lines
	redis.SetLogger(silent{})
	if task := os.Getenv(workerEnv); task != "" {
		os.Exit(workerMain(task))
	}
	goleak.VerifyTestMain(m)
}

// silent is a logger of go-redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// duration returns the length of a run.
func duration(t *testing.T, env string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v; want a duration, such as 60s", env, err)
	}
	return d
}

// newSeed returns the seed of a run and logs it.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v; want a number", seedEnv, err)
		}
	}
	t.Logf("seed %d (%s=%d repeats the operations and the faults)", seed, seedEnv, seed)
	return seed
}

// shownViolations is the number of violations that are reported with the events around them.
const shownViolations = 3

// judged logs a summary of the events and fails the test if they show a violation.
func judged(t *testing.T, seed uint64, limits history.Limits, events []history.Event) {
	t.Helper()
	keep(t, events)
	t.Log(summary(events))
	found := history.Judge(limits, events)
	refuted, counts := linearized(limits, events)
	t.Log(counts)
	found = append(found, refuted...)
	count := make(map[string]int)
	for i, v := range found {
		if count[v.Rule]++; count[v.Rule] == 1 || i < shownViolations {
			t.Errorf("seed %d: %s", seed, history.Window(events, v))
		}
	}
	if len(found) > 0 {
		t.Errorf("seed %d: %d violations: %v", seed, len(found), count)
	}
}

// keep writes the events to a file, which go test keeps with -artifacts.
func keep(t *testing.T, events []history.Event) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.ArtifactDir(), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := history.NewLog(file)
	for _, e := range events {
		log.Note(e)
	}
	if err := log.Err(); err != nil {
		t.Fatal(err)
	}
}

// summary counts the events.
func summary(events []history.Event) string {
	kinds, outcomes := make(map[history.EventKind]int), make(map[history.Outcome]int)
	holds := make(map[history.Lock]int)
	releases, updates := make(map[history.Outcome]int), 0
	var stood time.Duration
	for i := range events {
		e := &events[i]
		kinds[e.Kind]++
		switch {
		case e.Kind == history.Stall:
			stood += e.End - e.Begin
		case e.Kind == history.Acquire:
			outcomes[e.Outcome]++
		}
		if e.Hold != nil {
			holds[cmp.Or(e.Lock, "reentrant")]++
			releases[e.Hold.Release.Outcome]++
			updates += len(e.Hold.Updates)
		}
	}
	return fmt.Sprintf("events %v, stalls of %s in all\nacquisitions %v\nholds %v\nends of holds %v, %d updates\n%s",
		kinds, stood.Round(time.Millisecond), outcomes, holds, releases, updates, runsOf(events))
}

// wantRun fails the test if no lock was passed from caller to caller in memory, because the test has then not
// covered that case.
func wantRun(t *testing.T, events []history.Event) {
	t.Helper()
	if len(history.Runs(events)) == 0 {
		t.Error("the events show no run of two holds or more")
	}
}

// wantCovered fails the test if some holds are missing that only some runs have.
func wantCovered(t *testing.T, events []history.Event) {
	t.Helper()
	found := make(map[string]int)
	for i := range events {
		e := &events[i]
		if e.Hold == nil {
			continue
		}
		found[string(e.Lock)]++
		switch {
		case e.Process == 0:
			found["a thread of Redisson"]++
		case e.Ask.MaxHold > 0 && e.Hold.Cause == history.Lost:
			found["a limit that ended"]++
		}
	}
	for _, want := range []string{"a thread of Redisson", "a limit that ended", string(history.Group), string(history.NonReentrant)} {
		if t.Logf("%d holds: %s", found[want], want); found[want] == 0 {
			t.Errorf("the events show no hold of: %s", want)
		}
	}
}

// runsOf counts the runs, and the runs in which no lease was renewed.
func runsOf(events []history.Event) string {
	runs, longest, fixed := history.Runs(events), 0, 0
	for _, run := range runs {
		longest = max(longest, len(run))
		if !slices.ContainsFunc(run, func(e *history.Event) bool { return e.Ask.Renewed }) {
			fixed++
		}
	}
	return fmt.Sprintf("%d runs of up to %d holds, %d of them of fixed leases", len(runs), longest, fixed)
}
