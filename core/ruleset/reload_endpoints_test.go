package ruleset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/thorough"
	"github.com/interlock-go/interlock/core/ruleset"
)

// rekeyCases are changes of a file's rules, each on a line, with the problems that
// CompareLocks finds: a part of each.
var rekeyCases = map[string]struct {
	old, next string
	want      []string
}{
	"any method above a wildcard of one comes": {
		"{http: POST /*, key: k}",
		"{http: POST /*, key: k}\n{http: '* /orders/:id', key: l}",
		[]string{`locks.yaml:3:32: rule of http * /orders/:id: key: "l" in place of "k", of rule "POST /*"`},
	},
	"any method above a wildcard of one goes": {
		"{http: POST /*, key: k}\n{http: '* /orders/:id', key: l}",
		"{http: POST /*, key: k}",
		[]string{`rule of http POST /*: key: "k" in place of "l", of rule "* /orders/:id"`},
	},
	"longer wildcard of any method": {
		"{http: POST /a/*, key: k}", "{http: POST /a/*, key: k}\n{http: '* /a/b/*', key: l}", []string{`"l" in place of "k"`},
	},
	"wildcards that cross": {"{http: '* /x/*', key: k}", "{http: POST /*, key: l}", []string{`"l" in place of "k"`}},
	"a method that only a wildcard names": {
		"{http: POST /*, key: k}\n{http: '* /a/*', key: l}", "{http: POST /*, key: k}\n{http: 'PUT /a/*', key: l}",
		[]string{`rule of http POST /*: key: "k" in place of "l", of rule "* /a/*"`},
	},
	"method goes, any stays": {
		"{http: '* /a', key: l}\n{http: POST /a, key: k}", "{http: '* /a', key: l}", []string{`"l" in place of "k", of rule "POST /a"`},
	},
	"wildcards that do not meet": {"{http: POST /a/*, key: k}", "{http: PUT /a/*, key: l}\n{http: POST /b/*, key: l}", nil},
	"between two wildcards": {
		"{http: POST /a/*, key: k}\n{http: POST /a/b, key: l}", "{http: POST /*, key: l}\n{http: POST /a/b, key: l}", []string{`"l" in place of "k", of rule "POST /a/*"`},
	},
	"everything": {"{http: '*', key: k}", "{http: POST /*, key: l}", []string{`"l" in place of "k", of rule "*"`}},
	"each rule that goes": {
		"{http: '*', key: k}\n{http: POST /a, key: k}\n{http: PUT /a/*, key: k}", "{http: '*', key: l}",
		[]string{`which is in force`, `of rule "POST /a"`, `of rule "PUT /a/*"`},
	},
	"same message of many calls": {
		"{http: POST /a, name: n, key: k}\n{http: POST /b, name: n, key: k}\n{http: PUT /c/*, name: n, key: k}", "{http: '*', name: n, key: l}",
		[]string{`"l" in place of "k", which is in force`},
	},
	"any method, one of which had its own": {
		"{http: '* /a', key: k}\n{http: POST /a, key: l}", "{http: '* /a', key: m}\n{http: POST /a, key: l}",
		[]string{`rule of http * /a: key: "m" in place of "k", which is in force`},
	},
	"a method that comes beside any": {
		"{http: '* /a', key: k}", "{http: '* /a', key: k}\n{http: POST /a, keys: [k, l]}", nil,
	},
	"a method that is named elsewhere": {
		"{http: '* /a', key: k}\n{http: PUT /b, key: x}", "{http: '* /a', key: k}\n{http: PATCH /b, key: y}", nil,
	},
	"none of a wildcard's paths": {
		"{http: POST /*, key: k}\n{http: POST /a, key: l}", "{http: POST /a, key: l}\n{http: POST /b, key: m}",
		[]string{`rule of http POST /b: key: "m" in place of "k", of rule "POST /*"`},
	},
	"the path above a wildcard": {
		"{http: POST /a, key: k}\n{http: POST /a/*, key: l}", "{http: POST /a, key: k}\n{http: POST /a/*, key: m}", []string{`rule of http POST /a/*: key: "m" in place of "l"`},
	},
	"a wildcard that moves down": {
		"{http: POST /a/*, key: k}", "{http: POST /a/b/*, key: l}", []string{`rule of http POST /a/b/*: key: "l" in place of "k", of rule "POST /a/*"`},
	},
	"a service that comes beside all": {"{grpc: '*', key: k}", "{grpc: '*', key: k}\n{grpc: /a.B/*, key: l}", []string{`"l" in place of "k", of rule "*"`}},
	"services":                        {"{grpc: '*', key: k}\n{grpc: /a.B/*, key: l}", "{grpc: '*', key: k}", []string{`"k" in place of "l"`}},
	"functions below a name":          {"{func: 'job/*', key: k}", "{func: '*', key: l}", []string{`"l" in place of "k"`}},
	"function of one set":             {"{func: '*', key: k}", "{func: '*', key: k}\n{func: t, key: l}", nil}, // it may have had this key before

	"keys exchanged":         {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: a, key: l}\n{http: POST /a, name: b, key: k}", nil},
	"names exchanged, moved": {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: b, key: k}\n{http: POST /a, name: c, key: l}", nil},
	"merged":                 {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, keys: [l, k]}", nil},
	"split":                  {"{http: POST /a, keys: [l, k]}", "{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", nil},
	"another rule has it":    {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: b, key: k}", nil},
	"another rule gets it":   {"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: x}\n{http: POST /a, name: b, key: k}", nil},
	"hidden behind a lock that stays": {
		"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: m}", "{http: POST /a, name: b, keys: [z, m]}",
		[]string{`rule "b" of http POST /a: keys: "z", "m" in place of "k", of rule "a", whose place it takes: ` +
			`programs with the old and with the new rules would not exclude each other: write keys: ["k", "z", "m"] first, roll it out everywhere, then keys: ["z", "m"]; or`},
	},
	"two rules, two problems": {
		"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: a, key: x}\n{http: POST /a, name: b, key: y}",
		[]string{`rule "a" of http POST /a: key: "x" in place of "k", which is in force`, `rule "b" of http POST /a: key: "y" in place of "l", which is in force`},
	},
	"one switched off for another": {
		"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: k, disabled: true}\n{http: POST /a, name: b, key: l}", []string{`rule "b"`},
	},
	"one switched on for another": {
		"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l, disabled: true}", "{http: POST /a, name: a, key: k, dry_run: true}\n{http: POST /a, name: b, key: l}",
		[]string{`rule "b" of http POST /a: key: "l" in place of "k", of rule "a"`},
	},

	"when comes":                 {"{http: POST /a, key: k}", "{http: POST /a, key: k, when: a}", nil},
	"when changes, of many keys": {"{http: POST /a, keys: [k, l], when: a}", "{http: POST /a, keys: [k, l], when: b}", nil},
	"when changes, a key comes":  {"{http: POST /a, keys: [k], when: a}", "{http: POST /a, keys: [k, l], when: b}", nil},
	"when changes, key too":      {"{http: POST /a, key: k, when: a}", "{http: POST /a, key: l, when: b}", []string{`"l" in place of "k"`}},
}

func ruleLines(t *testing.T, lines string) *ruleset.Set {
	t.Helper()
	return load(t, "locks.yaml", "rules:\n- "+strings.ReplaceAll(lines, "\n", "\n- ")+"\n")
}

func TestCompareLocks_OfEveryEndpoint(t *testing.T) {
	t.Parallel()
	for name, tc := range rekeyCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := ruleLines(t, tc.old), ruleLines(t, tc.next)
			got := refused(old, next)
			for i, p := range got {
				if len(got) != len(tc.want) || !strings.Contains(p.Error(), tc.want[i]) {
					t.Errorf("got %v, want %d problems with %q", p, len(tc.want), tc.want)
				}
			}
			if len(got) == 0 && len(tc.want) > 0 {
				t.Errorf("got nothing, want %q", tc.want)
			}
			marked := false
			for _, c := range ruleset.Diff(old, next) {
				marked = marked || c.Rekeys
			}
			if marked && len(tc.want) == 0 {
				t.Error("Diff marks another lock")
			}
		})
	}
}

// manyRules are rules of every method, with wildcards, as one large file has them.
func manyRules(tb testing.TB, many int, key string) *ruleset.Set {
	tb.Helper()
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE", "*"}
	rules := make([]ruleset.Rule, 0, many)
	for i := range cap(rules) {
		method, path := methods[i%len(methods)], fmt.Sprintf("/api/v%d/things%d/:id", i%7, i)
		if i%10 == 0 {
			path += "/*"
		}
		rules = append(rules, ruleset.Rule{Endpoint: ruleset.Route(method, path), Keys: []string{"shared", key}})
	}
	set, err := ruleset.NewSet(rules)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// TestCompareLocks_OfManyRules: among many rules each is judged by itself. What it costs is
// BenchmarkCompareLocks's to say: ten times the rules take about ten times as long.
func TestCompareLocks_OfManyRules(t *testing.T) {
	t.Parallel()
	many := thorough.Or(10_000, 1_000)
	for key, want := range map[string]int{"a": 0, "b": many} {
		if got := refused(manyRules(t, many, "a"), manyRules(t, many, key)); len(got) != want {
			t.Errorf("key %s: got %d problems, want %d", key, len(got), want)
		}
	}
}

func BenchmarkCompareLocks(b *testing.B) {
	for _, many := range []int{1_000, 10_000} {
		for key, change := range map[string]string{"a": "same", "b": "every rule rekeyed"} {
			b.Run(fmt.Sprintf("%d rules, %s", many, change), func(b *testing.B) {
				old, next := manyRules(b, many, "a"), manyRules(b, many, key)
				for b.Loop() {
					refused(old, next)
				}
			})
		}
	}
}
