package ruleset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Each change is refused with the step to be written first; that step is taken, and so is
// the change after it.
func TestCompareLocks_SaysWhichStepComesFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next string
		steps     []string // what is told, of each problem
		between   string   // the rules that are told
	}{
		"a key": {
			"{http: POST /a, key: k}", "{http: POST /a, key: l}",
			[]string{`write keys: ["k", "l"] first, roll it out everywhere, then key: "l"; or allow_rekey: true`},
			"{http: POST /a, keys: [k, l]}",
		},
		"keys": {
			"{http: POST /a, keys: [k, l]}", "{http: POST /a, keys: [l, m]}",
			[]string{`write keys: ["k", "l", "m"] first, roll it out everywhere, then keys: ["l", "m"]`},
			"{http: POST /a, keys: [k, l, m]}",
		},
		"a prefix": {
			"{http: POST /a, key: k, prefix: 'a:'}", "{http: POST /a, key: k, prefix: 'b:'}",
			[]string{`write keys: ["a:k", "b:k"] without prefix first, roll it out everywhere, then prefix: "b:" and key: "k"`},
			"{http: POST /a, keys: ['a:k', 'b:k']}",
		},
		"a key behind a prefix": {
			"{http: POST /a, key: k, prefix: 'a:'}", "{http: POST /a, key: l, prefix: 'a:'}",
			[]string{`write keys: ["k", "l"] first, roll it out everywhere, then key: "l"`},
			"{http: POST /a, keys: [k, l], prefix: 'a:'}",
		},
		"a prefix that goes": {
			"{http: POST /a, key: k, prefix: 'a:'}", "{http: POST /a, key: k}",
			[]string{`write keys: ["a:k", "k"] without prefix first, roll it out everywhere, then key: "k"`},
			"{http: POST /a, keys: ['a:k', k]}",
		},
		"a key under a condition": {
			"{http: POST /a, key: k, when: a}", "{http: POST /a, key: l, when: a}",
			[]string{`write keys: ["k", "l"] first, roll it out everywhere, then key: "l"; or`},
			"{http: POST /a, keys: [k, l], when: a}",
		},
		"a key and its condition": {
			"{http: POST /a, key: k, when: a}", "{http: POST /a, key: l, when: b}",
			[]string{`write keys: ["k", "l"] first, roll it out everywhere, then key: "l"; or`},
			"{http: POST /a, keys: [k, l], when: b}",
		},
		"two rules become one": {
			"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: c, key: m}",
			[]string{`rule "c" of http POST /a: key: "m" in place of "k", of rule "a", whose place it takes: programs with the old and with the new rules would not exclude each other: write keys: ["k", "l", "m"] first`},
			"{http: POST /a, name: c, keys: [k, m, l]}",
		},
		"one rule becomes two": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: b, key: l}\n{http: POST /a, name: c, key: m}",
			[]string{`rule "b" of http POST /a: key: "l" in place of "k"`, `rule "c" of http POST /a: key: "m" in place of "k"`},
			"{http: POST /a, name: b, keys: [k, l]}\n{http: POST /a, name: c, keys: [k, m]}",
		},
		"a kind of one key": {
			"{http: POST /a, key: k, kind: fair}", "{http: POST /a, key: l, kind: fair}",
			[]string{`write a second rule with key: "k" beside it first, roll it out everywhere, then remove that one; or allow_rekey: true`},
			"{http: POST /a, name: a, key: l, kind: fair}\n{http: POST /a, name: b, key: k, kind: fair}",
		},
		"a wildcard's key below it": {
			"{http: POST /*, key: k}", "{http: POST /*, key: k}\n{http: POST /a, key: l}",
			[]string{`rule of http POST /a: key: "l" in place of "k", of rule "POST /*", whose place it takes`},
			"{http: POST /*, key: k}\n{http: POST /a, keys: [k, l]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, between, next := ruleLines(t, tc.old), ruleLines(t, tc.between), ruleLines(t, tc.next)
			got := refused(old, next)
			if len(got) != len(tc.steps) {
				t.Fatalf("got %v, want %d problems", ruleset.Invalid(got...), len(tc.steps))
			}
			for i, p := range got {
				if !strings.Contains(p.Error(), tc.steps[i]) {
					t.Errorf("got %v, want it to say\n%s", p, tc.steps[i])
				}
			}
			for step, change := range [][2]*ruleset.Set{{old, between}, {between, next}} {
				if more := refused(change[0], change[1]); len(more) > 0 {
					t.Errorf("step %d: got %v", step+1, ruleset.Invalid(more...))
				}
			}
		})
	}
}

// What a layer below may bring is not judged here, whatever the other rules are.
func TestCompareLocksAt_OfPartialRulesIsUnknown(t *testing.T) {
	t.Parallel()
	partial := onlyRule(t, "rules:\n- {func: a, wait_time: 1s}\n")
	whole, other := onlyRule(t, "rules:\n- {func: a, key: k}\n"), onlyRule(t, "rules:\n- {func: a, key: l}\n")
	if !partial.Partial() || whole.Partial() {
		t.Fatal("a rule without a key is partial, and no other")
	}
	type rules = []*ruleset.Resolved
	for _, pair := range [][2]rules{{{partial}, {whole}}, {{whole}, {partial}}, {{whole, partial}, {other}}, {nil, {whole}}, {{whole}, nil}, {nil, nil}} {
		if got := refusedAt(pair[0], pair[1]); len(got) > 0 {
			t.Errorf("%q, then %q: got %v", namesOf(pair[0]), namesOf(pair[1]), got)
		}
	}
	if got := refusedAt(rules{whole}, rules{other}); len(got) != 1 {
		t.Errorf("got %v, want a problem", got)
	}
}

// Diff marks the fields that say which lock is taken and when, of rules whose endpoint
// takes other locks, and the rules there that came or went; nothing else.
func TestDiff_MarksTheFieldsOfALock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next    string
		marked, kept []string // changes by rule and field
	}{
		"one field of several": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: l, wait_time: 3s, message: later}",
			[]string{"a key"},
			[]string{"a wait_time", "a message"},
		},
		"the prefix": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: k, prefix: 'p:', max_waiters: 3}",
			[]string{"a prefix"},
			[]string{"a max_waiters"},
		},
		"the kind": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: k, kind: fair}", []string{"a kind"}, nil,
		},
		"rules that come and go": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: b, key: l}", []string{"b added", "a removed"}, nil,
		},
		"another endpoint": {
			"{http: POST /a, name: a, key: k}\n{http: POST /b, name: b, key: k}", "{http: POST /a, name: a, key: l}\n{http: POST /b, name: b, keys: [k, l]}",
			[]string{"a key"},
			[]string{"b keys"},
		},
		"nothing": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, keys: [k, l], on_busy: skip}", nil, []string{"a keys", "a on_busy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var marked, kept []string
			for _, c := range ruleset.Diff(ruleLines(t, tc.old), ruleLines(t, tc.next)) {
				what := c.Rule + " " + c.Field
				switch {
				case c.OldRule == nil:
					what += "added"
				case c.NewRule == nil:
					what += "removed"
				}
				if c.Rekeys {
					marked = append(marked, what)
				} else {
					kept = append(kept, what)
				}
			}
			slices.Sort(kept)
			slices.Sort(tc.kept)
			if !slices.Equal(marked, tc.marked) || !slices.Equal(kept, tc.kept) {
				t.Errorf("got %q marked and %q kept, want %q and %q", marked, kept, tc.marked, tc.kept)
			}
		})
	}
}
