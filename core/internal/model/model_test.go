package model_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promises are the invariants of Lock.tla.
var promises = []string{
	"Exclusion", "AliveIsInRedis", "LeaseIsKept", "ForcedIsKnown", "ReleasedStaysAway", "NothingOfOthers",
	"NothingLeft", "LeaseInRedis", "CountIsKnown", "TokensRise",
}

// check is one search.
type check struct {
	name string
	bounds
}

func changed(change func(b *bounds)) bounds {
	b := normal
	change(&b)
	return b
}

var (
	// kept lists the searches in which all promises hold. A nightly run adds the deep ones.
	kept = []check{
		{"late commands", changed(func(b *bounds) { b.lost, b.late = 1, 1 })},
		{"clocks", changed(func(b *bounds) { b.long, b.leases, b.margin, b.drift = 3, []int{3}, 1, 1 })},
		{"force release", changed(func(b *bounds) { b.may = []string{"force"} })},
		{"re-entry", changed(func(b *bounds) { b.may, b.others, b.lost = []string{"enter", "refresh"}, 0, 2 })},
		{"refresh", changed(func(b *bounds) { b.may, b.lost = []string{"refresh"}, 1 })},
		{"hand-off", changed(func(b *bounds) { b.may, b.turns = []string{"handoff"}, 2 })},
		{"token", changed(func(b *bounds) { b.may = []string{"token"} })},
		{"run in memory", changed(func(b *bounds) { b.may, b.turns = []string{"pass"}, 2 })},
		{"run of fixed leases", changed(func(b *bounds) {
			b.may, b.turns, b.others, b.leases, b.lost = []string{"pass", "enter"}, 2, 0, []int{1, 2}, 1
		})},
	}
	deep = []check{
		{"deep: late commands", changed(func(b *bounds) { b.fields, b.lost, b.late = 4, 1, 1 })},
		{"deep: clocks", changed(func(b *bounds) { b.long, b.leases, b.margin, b.drift, b.lost, b.fields = 3, []int{3}, 1, 1, 1, 4 })},
		{"deep: force release", changed(func(b *bounds) { b.may, b.lost, b.late, b.fields = []string{"force"}, 1, 1, 4 })},
		{"deep: re-entry", changed(func(b *bounds) { b.may, b.lost, b.fields = []string{"enter", "refresh"}, 1, 4 })},
		{"deep: hand-off", changed(func(b *bounds) { b.may, b.turns, b.lost, b.fields = []string{"handoff"}, 2, 1, 4 })},
		{"deep: token", changed(func(b *bounds) { b.may, b.lost, b.late = []string{"token", "handoff"}, 1, 1 })},
		{"deep: run in memory", changed(func(b *bounds) {
			b.may, b.turns, b.others, b.fields, b.leases = []string{"pass"}, 2, 2, 4, []int{1, 2}
		})},
	}
)

func TestModel_PromisesHold(t *testing.T) {
	t.Parallel()
	checks := kept
	if os.Getenv(depthEnv) == "deep" {
		checks = append(checks, deep...)
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if r := safety(t, c.bounds, promises...); r.violated != "" {
				t.Errorf("%s is violated:\n%s", r.violated, r.output)
			}
		})
	}
}

// safety checks invariants.
func safety(t *testing.T, b bounds, invariants ...string) result {
	t.Helper()
	return search(t, folder(t), "Lock", "SPECIFICATION Spec\nCONSTANTS\n"+b.constants()+
		"CONSTRAINT Bounds\nSYMMETRY Symmetry\nCHECK_DEADLOCK FALSE\nINVARIANTS "+strings.Join(invariants, " ")+"\n")
}

// liveness checks one temporal property.
func liveness(t *testing.T, c comes) result {
	t.Helper()
	return search(t, folder(t), "Lock", "SPECIFICATION "+c.spec+"\nCONSTANTS\n"+c.constants()+
		"CONSTRAINT Bounds\nCHECK_DEADLOCK FALSE\nPROPERTY "+c.property+"\n")
}

// mutants maps the changes of the protocol, by their names in Lock.tla, to the promises that they break.
var mutants = []struct {
	mutant, breaks string
	change         func(b *bounds)
}{
	{"the lease counts from the answer", "Exclusion", nil},
	{"the lease has no margin", "Exclusion", func(b *bounds) { b.long, b.leases, b.margin, b.drift = 3, []int{3}, 1, 1 }},
	{"a context ends by its timer only", "Exclusion", nil},
	{"a context ends after the release", "Exclusion", nil},
	{"a hand-off counts from its last send", "Exclusion", func(b *bounds) { b.may, b.turns = []string{"handoff"}, 2 }},
	{"a re-entry lowers the TTL", "Exclusion", func(b *bounds) { b.may = []string{"enter"} }},
	{"a late refresh is forgotten", "Exclusion", func(b *bounds) { b.may = []string{"refresh", "enter"} }},
	{"two callers of a run hold at once", "Exclusion", func(b *bounds) { b.may, b.turns = []string{"pass"}, 2 }},
	{"a run outlives its lease", "AliveIsInRedis", func(b *bounds) { b.may, b.turns = []string{"pass"}, 2 }},
	{"a run lowers no deadline", "LeaseIsKept", func(b *bounds) { b.may, b.turns, b.leases = []string{"pass"}, 2, []int{1, 2} }},
	{"a run goes on with an unanswered command", "CountIsKnown", func(b *bounds) { b.may, b.turns = []string{"pass", "enter"}, 2 }},
	{"a re-entry increments the count", "CountIsKnown", func(b *bounds) { b.may, b.lost = []string{"enter"}, 2 }},
	{"a refused renewal is ignored", "ForcedIsKnown", func(b *bounds) { b.may = []string{"force"} }},
	{"a renewal creates the lock", "ReleasedStaysAway", nil},
	{"a field is used again", "ReleasedStaysAway", func(b *bounds) { b.turns, b.others = 2, 2 }},
	{"a release frees any holder", "NothingOfOthers", nil},
	{"a hand-off replaces any holder", "NothingOfOthers", func(b *bounds) { b.may, b.turns = []string{"handoff"}, 2 }},
	{"an abandoned field is forgotten", "NothingLeft", nil},
	{"one look settles an orphan", "NothingLeft", nil},
	{"a raise without an answer is forgotten", "NothingLeft", nil},
	{"an acquire sets no lease", "LeaseInRedis", nil},
	{"the token is drawn after the grant", "TokensRise", func(b *bounds) { b.may = []string{"token"} }},
}

func TestModel_MutantsAreRefuted(t *testing.T) {
	t.Parallel()
	unrefuted := slices.Clone(promises)
	for _, m := range mutants {
		unrefuted = slices.DeleteFunc(unrefuted, func(name string) bool { return name == m.breaks })
		t.Run(m.mutant, func(t *testing.T) {
			t.Parallel()
			b := normal
			b.mutant, b.fields, b.lost, b.late = m.mutant, 4, 1, 1
			if m.change != nil {
				m.change(&b)
			}
			if r := safety(t, b, m.breaks); r.violated != m.breaks {
				t.Errorf("violated: %q, want %s\n%s", r.violated, m.breaks, r.output)
			}
		})
	}
	if len(unrefuted) > 0 {
		t.Errorf("no mutant violates %q", unrefuted)
	}
}

// TestModel_NotPromised lets TLC find a behavior that violates each statement that core does not promise.
func TestModel_NotPromised(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ may, violates, within string }{
		{"forget", "AliveIsInRedis", "a new master does not know of a lock"},
		{"forget", "Exclusion", "a new master does not know of a lock"},
		{"step", "AliveIsInRedis", "the clock of Redis steps"},
		{"step", "Exclusion", "the clock of Redis steps"},
		{"work", "OneWorks", "code ignores its context"},
		{"had", "NotTwice", "two callers run one after the other"},
	} {
		t.Run(tc.may+"/"+tc.violates, func(t *testing.T) {
			t.Parallel()
			b := normal
			b.may = []string{tc.may}
			if r := safety(t, b, tc.violates); r.violated != tc.violates {
				t.Errorf("violated: %q, want %s, because %s", r.violated, tc.violates, tc.within)
			}
		})
	}
}

// comes is a temporal property under the fairness of a specification.
type comes struct {
	spec, property string
	bounds
}

var (
	dies    = changed(func(b *bounds) { b.may = []string{"die"} })
	comings = []comes{
		{"FairSpec", "EveryTurnComes", changed(func(b *bounds) { b.lost = 1 })},
		{"FairSpec", "EveryTurnComes", dies},
		{"ReaperSpec", "OrphansAreCleared", changed(func(b *bounds) { b.lost, b.late = 1, 1 })},
	}
	slow = []struct {
		mutant string
		of     comes
	}{
		{"an acquire sets no lease", comings[1]},
		{"a refused waiter sleeps until it is woken", comings[0]},
		{"no reaper clears orphans", comings[2]},
	}
)

func TestModel_Liveness(t *testing.T) {
	t.Parallel()
	for _, c := range comings {
		t.Run(c.property+"/"+strings.Join(c.may, ""), func(t *testing.T) {
			t.Parallel()
			if r := liveness(t, c); r.violated != "" {
				t.Errorf("%s is violated:\n%s", c.property, r.output)
			}
		})
	}
	for _, m := range slow {
		t.Run(m.mutant, func(t *testing.T) {
			t.Parallel()
			m.of.mutant = m.mutant
			if r := liveness(t, m.of); r.violated != temporal {
				t.Errorf("%s holds", m.of.property)
			}
		})
	}
}

// TestModel_EveryMutantIsTried compares the names of the mutants with Lock.tla, without TLC.
func TestModel_EveryMutantIsTried(t *testing.T) {
	t.Parallel()
	tried := make(map[string]bool)
	for _, m := range mutants {
		tried[m.mutant] = true
	}
	for _, m := range slow {
		tried[m.mutant] = true
	}
	text, err := os.ReadFile("Lock.tla")
	if err != nil {
		t.Fatal(err)
	}
	written := make(map[string]bool)
	for _, found := range regexp.MustCompile(`Is\("([^"]+)"\)`).FindAllStringSubmatch(string(text), -1) {
		written[found[1]] = true
		if !tried[found[1]] {
			t.Errorf("no test tries the mutant %q of Lock.tla", found[1])
		}
	}
	for name := range tried {
		if !written[name] {
			t.Errorf("Lock.tla has no mutant %q", name)
		}
	}
}
