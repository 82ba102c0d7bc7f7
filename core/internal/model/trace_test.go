package model_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/history"
)

// trace is a run in the form that module Trace reads.
type trace struct {
	name  string
	of    []int // the process of each operation
	token []int // the rank of the token of each operation
	steps []step
	lease []int // the lease of each operation, in ticks of the model
}

// step is a step of an operation; their numbers begin at 1.
type step struct {
	at        time.Duration
	do        string
	operation int
}

// traceOf converts the events of package history.
func traceOf(name string, events []history.Event) trace {
	tr := trace{name: name}
	operations := make(map[string]int)
	tokens := make(map[int]int64)
	add := func(process int) int {
		tr.of, tr.lease = append(tr.of, process), append(tr.lease, normal.long)
		return len(tr.of)
	}
	for _, e := range events {
		switch {
		case e.Kind == history.Force:
			tr.force(e, add(e.Process))
		case operations[e.Owner] == 0:
			operations[e.Owner] = add(e.Process)
			fallthrough
		default:
			o := operations[e.Owner]
			if e.Hold != nil {
				tokens[o] = e.Hold.Token
			}
			if e.Ask.Reentry {
				tr.reentry(e, o)
			} else {
				tr.hold(e, o)
			}
		}
	}
	var order []int64
	for _, token := range tokens {
		order = append(order, token)
	}
	slices.Sort(order)
	tr.token = make([]int, len(tr.of))
	for o, token := range tokens {
		if token != 0 {
			tr.token[o-1] = 1 + slices.Index(order, token)
		}
	}
	slices.SortFunc(tr.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return tr
}

func (tr *trace) add(at time.Duration, operation int, do string) {
	tr.steps = append(tr.steps, step{at, do, operation})
}

func (tr *trace) force(e history.Event, o int) {
	tr.add(e.Begin, o, "forces")
	if e.Outcome == history.OK {
		tr.add(e.End, o, "forced")
	}
}

func (tr *trace) hold(e history.Event, o int) {
	if !e.Ask.Renewed {
		tr.lease[o-1] = normal.short
	}
	tr.add(e.Begin, o, "asks")
	if e.Hold == nil {
		tr.add(e.End, o, "refused")
		return
	}
	tr.add(e.End, o, "acquired")
	if e.Hold.Alive > e.End {
		tr.add(e.Hold.Alive, o, "alive")
	}
	if e.Hold.Ended > 0 {
		tr.add(e.Hold.Ended, o, "lost")
	}
	tr.add(e.Hold.Release.Begin, o, "ends")
	tr.add(e.Hold.Release.End, o, word(e.Hold.Release.Outcome, "ended"))
}

func (tr *trace) reentry(e history.Event, o int) {
	tr.add(e.Begin, o, "enters")
	if e.Hold == nil {
		tr.add(e.End, o, word(e.Outcome, ""))
		return
	}
	tr.add(e.End, o, "entered")
	tr.add(e.Hold.Release.Begin, o, "leaves")
	tr.add(e.Hold.Release.End, o, word(e.Hold.Release.Outcome, "left"))
}

// word returns the name of the step for an outcome.
func word(outcome history.Outcome, ok string) string {
	switch outcome {
	case history.OK, history.Acquired:
		return ok
	case history.Lost, history.NotHeld:
		return "lost"
	default:
		return "unsure"
	}
}

func (tr *trace) tla() string {
	var text strings.Builder
	fmt.Fprintf(&text, "[of |-> %s, token |-> %s, steps |-> <<", tuple(tr.of), tuple(tr.token))
	for i, s := range tr.steps {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "<<%q, %d>>", s.do, s.operation)
	}
	fmt.Fprintf(&text, ">>, lease |-> %s, ticks |-> %d]", tuple(tr.lease), tr.losers())
	return text.String()
}

// losers returns the number of holders that lose their lock.
func (tr *trace) losers() int {
	lost := make(map[int]bool)
	for _, s := range tr.steps {
		if s.do == "lost" {
			lost[s.operation] = true
		}
	}
	return len(lost)
}

func tuple(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return "<<" + strings.Join(words, ", ") + ">>"
}

var reachedText = regexp.MustCompile(`<<"reached", (\d+), (\d+)>>`)

// follow returns, for each trace, the number of steps that the model can take.
func follow(t *testing.T, traces []trace) []int {
	t.Helper()
	dir := folder(t)
	words, operations := make([]string, len(traces)), 0
	for i, tr := range traces {
		words[i] = tr.tla()
		operations = max(operations, len(tr.of))
	}
	runs := "---- MODULE Runs ----\nRuns == <<\n" + strings.Join(words, ",\n") + "\n>>\n====\n"
	if err := os.WriteFile(filepath.Join(dir, "Runs.tla"), []byte(runs), 0o600); err != nil {
		t.Fatal(err)
	}
	b := normal
	b.clients, b.may = []string{"1", "2"}, []string{"enter", "force", "handoff", "pass", "token"}
	b.turns, b.others, b.fields, b.leases = operations, operations, 5, []int{1, 2}
	b.lost, b.late = 2, 1
	r := search(t, dir, "Trace", "SPECIFICATION TraceSpec\nCONSTANTS\n"+b.constants()+"CONSTRAINTS Reached Bounds\nCHECK_DEADLOCK FALSE\n")
	reached := make([]int, len(traces))
	for _, found := range reachedText.FindAllStringSubmatch(r.output, -1) {
		n, _ := strconv.Atoi(found[1])
		at, _ := strconv.Atoi(found[2])
		reached[n-1] = max(reached[n-1], at-1)
	}
	return reached
}

// recorded records runs with different plans.
func recorded(t *testing.T, runs int) []trace {
	t.Helper()
	traces := make([]trace, 0, runs)
	for seed := range uint64(runs) {
		p := plan{reentries: seed%2 == 0, tokens: seed%3 == 0, fixed: seed%10 == 1, force: seed%5 == 2, lost: seed%5 == 3}
		traces = append(traces, traceOf(fmt.Sprintf("run %d %+v", seed, p), record(t, seed, p)))
	}
	return traces
}

// TestTrace_RunsAreAccepted requires that the model accepts recorded runs and refuses changed ones.
// With INTERLOCK_MODEL=deep it records five times as many runs.
func TestTrace_RunsAreAccepted(t *testing.T) {
	t.Parallel()
	runs := 100
	if os.Getenv(depthEnv) == "deep" {
		runs *= 5
	}
	traces := recorded(t, runs)
	jar(t)
	var doctored []trace
	for _, d := range doctors {
		of := len(doctored)
		for _, tr := range traces {
			if wrong, ok := d.doctor(tr); ok && len(doctored)-of < 3 {
				wrong.name += ": " + d.name
				doctored = append(doctored, wrong)
			}
		}
		if len(doctored) == of {
			t.Errorf("no run fits the change %s", d.name)
		}
	}
	steps := 0
	for i, reached := range follow(t, append(traces, doctored...)) {
		switch {
		case i < len(traces):
			steps += reached
			if tr := traces[i]; reached < len(tr.steps) {
				t.Errorf("%s is refused at step %d: %v\n%s", tr.name, reached+1, tr.steps[reached], tr.tla())
			}
		case reached == len(doctored[i-len(traces)].steps):
			t.Errorf("%s is accepted", doctored[i-len(traces)].name)
		}
	}
	t.Logf("%d runs with %d steps accepted, %d changed runs refused", len(traces), steps, len(doctored))
}

// doctors contains functions that change a trace into a run of a wrong protocol.
var doctors = []struct {
	name   string
	doctor func(tr trace) (wrong trace, ok bool)
}{
	{"granted before the release", func(tr trace) (trace, bool) { return early(tr, "ends") }},
	{"two holders are alive", func(tr trace) (trace, bool) { return early(tr, "alive") }},
	{"tokens swapped", func(tr trace) (trace, bool) {
		first, second := slices.Index(tr.token, 1), slices.Index(tr.token, 2)
		if first < 0 || second < 0 {
			return tr, false
		}
		tr.token = slices.Clone(tr.token)
		tr.token[first], tr.token[second] = 2, 1
		return tr, true
	}},
	{"released without a release", func(tr trace) (trace, bool) {
		at := slices.IndexFunc(tr.steps, func(s step) bool { return s.do == "ends" })
		if at < 0 {
			return tr, false
		}
		tr.steps = slices.Delete(slices.Clone(tr.steps), at, at+1)
		return tr, true
	}},
}

// early moves a grant before a step of the previous holder, which belongs to another process.
func early(tr trace, do string) (trace, bool) {
	last := 0
	for i, s := range tr.steps {
		if s.do == "lost" || s.do == "unsure" {
			return tr, false
		}
		if s.do != "acquired" {
			continue
		}
		other := last != 0 && tr.of[last-1] != tr.of[s.operation-1]
		at := slices.IndexFunc(tr.steps, func(other step) bool { return other.do == do && other.operation == last })
		asked := slices.IndexFunc(tr.steps, func(own step) bool { return own.do == "asks" && own.operation == s.operation })
		if other && at >= 0 && asked < at && at < i {
			tr.steps = slices.Delete(slices.Clone(tr.steps), i, i+1)
			tr.steps = slices.Insert(tr.steps, at, s)
			return tr, true
		}
		last = s.operation
	}
	return tr, false
}
