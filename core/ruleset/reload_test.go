package ruleset_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// refused are the problems for which a reload is refused.
func refused(old, next *ruleset.Set) []*ruleset.Problem {
	problems, _ := ruleset.CompareLocks(old, next)
	return problems
}

// refusedAt is refused for the rules of one endpoint.
func refusedAt(old, next []*ruleset.Resolved) []*ruleset.Problem {
	problems, _ := ruleset.CompareLocksAt(ruleset.Endpoint{}, old, next)
	return problems
}

// What a reload changes about who excludes whom is refused, or named as what runs unlocked.
func TestReload_NothingGoesUnsaid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next string
		refused   string   // the field; "" if the reload is accepted
		unlocked  []string // what is named
	}{
		"writers become readers":   {"{func: f, key: k, kind: write}", "{func: f, key: k, kind: read}", "kind", nil},
		"readers become writers":   {"{func: f, key: k, kind: read}", "{func: f, key: k, kind: write}", "kind", nil},
		"another size":             {"{func: f, key: k, kind: semaphore, permits: 1}", "{func: f, key: k, kind: semaphore, permits: 5}", "permits", nil},
		"a condition comes":        {"{func: f, key: k}", "{func: f, key: k, when: in.Big}", "", []string{`func f: when "in.Big"`}},
		"another condition":        {"{func: f, key: k, when: in.Old}", "{func: f, key: k, when: in.Big}", "", []string{`func f: when "in.Big"`}},
		"a condition goes":         {"{func: f, key: k, when: in.Big}", "{func: f, key: k}", "", nil},
		"runs when it is busy":     {"{func: f, key: k}", "{func: f, key: k, on_busy: proceed}", "", []string{"func f: on_busy proceed"}},
		"runs without Redis":       {"{func: f, key: k}", "{func: f, key: k, on_backend: proceed, on_overload: skip}", "", []string{"func f: on_backend proceed"}},
		"runs as it did":           {"{func: f, key: k, on_busy: proceed}", "{func: f, key: k, on_busy: proceed, wait_time: 1s}", "", nil},
		"disabled":                 {"{func: f, key: k}", "{func: f, key: k, disabled: true}", "", []string{"func f: disabled"}},
		"another key and disabled": {"{func: f, key: k}", "{func: f, key: l, disabled: true}", "", []string{"func f: disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := ruleLines(t, tc.old), ruleLines(t, tc.next)
			var fields []string
			for _, p := range refused(old, next) {
				fields = append(fields, p.Field)
			}
			if want := []string{tc.refused}; len(fields) > 0 != (tc.refused != "") || len(fields) > 0 && !slices.Equal(fields, want) {
				t.Errorf("refused for %q, want %q", fields, tc.refused)
			}
			if got := (ruleset.Reload{Old: old, Set: next}).Unlocked(); !slices.Equal(got, tc.unlocked) {
				t.Errorf("named %q, want %q", got, tc.unlocked)
			}
		})
	}
}
