package ruleset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/thorough"
	"github.com/interlock-go/interlock/core/ruleset"
)

// refused returns the problems that make a reload refused.
func refused(old, next *ruleset.Set) []*ruleset.Problem {
	problems, _ := ruleset.CompareLocks(old, next)
	return problems
}

// refusedAt returns the problems of the rules of one endpoint.
func refusedAt(old, next []*ruleset.Resolved) []*ruleset.Problem {
	problems, _ := ruleset.CompareLocksAt(ruleset.Endpoint{}, old, next)
	return problems
}

func TestCompareLocks_Refuses(t *testing.T) {
	t.Parallel()
	type rules = []ruleset.Rule
	pay, orders, all := ruleset.HTTP("POST /orders/:id/pay"), ruleset.HTTP("POST /orders/*"), ruleset.HTTP("*")
	service, method := ruleset.GRPC("/shop.Orders/*"), ruleset.GRPC("/shop.Orders/Pay")
	const k, l = "order:#{path.id}", "pay:#{path.id}"
	for name, tc := range map[string]struct {
		old, next rules
		want      string // "" for no problem; otherwise a part of the only problem
	}{
		"same": {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: k}}, ""},
		"another key": {
			rules{{Endpoint: pay, Key: k}},
			rules{{Endpoint: pay, Key: l}},
			`locks.yaml:2:5: rule of http POST /orders/:id/pay: key: "pay:#{path.id}" in place of "order:#{path.id}", which is in force: ` +
				`programs with the old and with the new rules would not exclude each other: ` +
				`write keys: ["order:#{path.id}", "pay:#{path.id}"] first, roll it out everywhere, then key: "pay:#{path.id}"; or allow_rekey: true`,
		},
		"first step":            {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Keys: []string{l, k}}}, ""},
		"second step":           {rules{{Endpoint: pay, Keys: []string{k, l}}}, rules{{Endpoint: pay, Key: l}}, ""},
		"one of two is another": {rules{{Endpoint: pay, Keys: []string{k, "a"}}}, rules{{Endpoint: pay, Keys: []string{k, "b"}}}, `write keys: ["order:#{path.id}", "a", "b"] first`},
		"none of two is kept":   {rules{{Endpoint: pay, Keys: []string{k, "a"}}}, rules{{Endpoint: pay, Keys: []string{l, "b"}}}, `then keys: ["pay:#{path.id}", "b"]; or`},
		"key in another letter": {rules{{Endpoint: pay, Key: "a"}}, rules{{Endpoint: pay, Key: "A"}}, `"A" in place of "a"`},

		"another prefix": {
			rules{{Endpoint: pay, Key: k, Prefix: "shop:"}},
			rules{{Endpoint: pay, Key: k, Prefix: "store:"}},
			`prefix: "store:order:#{path.id}" in place of "shop:order:#{path.id}", which is in force: programs with the old and with the new rules would not exclude each other: ` +
				`write keys: ["shop:order:#{path.id}", "store:order:#{path.id}"] without prefix first, roll it out everywhere, then prefix: "store:" and key: "order:#{path.id}"; or allow_rekey: true`,
		},
		"no prefix any more":      {rules{{Endpoint: pay, Key: k, Prefix: "shop:"}}, rules{{Endpoint: pay, Key: k}}, `then key: "order:#{path.id}"; or`},
		"prefix moved into key":   {rules{{Endpoint: pay, Key: k, Prefix: "shop:"}}, rules{{Endpoint: pay, Key: "shop:" + k}}, ""},
		"first step of prefixes":  {rules{{Endpoint: pay, Key: k, Prefix: "a:"}}, rules{{Endpoint: pay, Keys: []string{"a:" + k, "b:" + k}}}, ""},
		"second step of prefixes": {rules{{Endpoint: pay, Keys: []string{"a:" + k, "b:" + k}}}, rules{{Endpoint: pay, Key: k, Prefix: "b:"}}, ""},

		"added":              {nil, rules{{Endpoint: pay, Key: k}}, ""},
		"removed":            {rules{{Endpoint: pay, Key: k}}, nil, ""},
		"was disabled":       {rules{{Endpoint: pay, Key: k, Disabled: true}}, rules{{Endpoint: pay, Key: l}}, ""},
		"is disabled":        {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: l, Disabled: true}}, ""},
		"was a dry run":      {rules{{Endpoint: pay, Key: k, DryRun: true}}, rules{{Endpoint: pay, Key: l}}, ""},
		"is a dry run":       {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: l, DryRun: true}}, ""},
		"was none":           {rules{{Endpoint: pay, None: true}}, rules{{Endpoint: pay, Key: l}}, ""},
		"is none":            {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, None: true}}, ""},
		"debounced":          {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: k, Debounce: time.Second}}, ""},
		"debounced, rekeyed": {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: l, Debounce: time.Second}}, "in place of"},
		"another condition":  {rules{{Endpoint: pay, Key: k, When: "true"}}, rules{{Endpoint: pay, Key: k, When: "false"}}, ""},
		"another key format": {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Key: k, KeyFormat: ruleset.Strict}}, ""},

		"renamed":              {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Name: "pay", Key: k}}, ""},
		"renamed, rekeyed":     {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Name: "pay", Key: l}}, `of rule "POST /orders/:id/pay", whose place it takes`},
		"renamed, disabled":    {rules{{Endpoint: pay, Key: k, Disabled: true}}, rules{{Endpoint: pay, Name: "pay", Key: l}}, ""},
		"one renamed, one new": {rules{{Endpoint: pay, Key: k}}, rules{{Endpoint: pay, Name: "a", Key: l}, {Endpoint: pay, Name: "b", Key: k}}, ""},
		"added beside": {
			rules{{Endpoint: pay, Name: "a", Key: k}},
			rules{{Endpoint: pay, Name: "a", Key: k}, {Endpoint: pay, Name: "b", Key: l}},
			"",
		},
		"one of two rekeyed": {
			rules{{Endpoint: pay, Name: "a", Key: k}, {Endpoint: pay, Name: "b", Key: "x"}},
			rules{{Endpoint: pay, Name: "b", Key: l}, {Endpoint: pay, Name: "a", Key: k}},
			`locks.yaml:2:5: rule "b" of http POST /orders/:id/pay: key: "pay:#{path.id}" in place of "x"`,
		},
		"keys exchanged": {
			rules{{Endpoint: pay, Name: "a", Key: k}, {Endpoint: orders, Key: l}},
			rules{{Endpoint: pay, Name: "a", Key: l}, {Endpoint: orders, Key: l}},
			`rule "a"`,
		},

		"exact beside a wildcard, same key":    {rules{{Endpoint: orders, Key: k}}, rules{{Endpoint: orders, Key: k}, {Endpoint: pay, Key: k, WaitTime: time.Second}}, ""},
		"exact beside a wildcard, another key": {rules{{Endpoint: orders, Key: k}}, rules{{Endpoint: orders, Key: k}, {Endpoint: pay, Key: l}}, `of rule "POST /orders/*", whose place it takes`},
		"exact beside a wildcard, none":        {rules{{Endpoint: orders, Key: k}}, rules{{Endpoint: orders, Key: k}, {Endpoint: pay, None: true}}, ""},
		"exact went, wildcard stays":           {rules{{Endpoint: orders, Key: k}, {Endpoint: pay, Key: l}}, rules{{Endpoint: orders, Key: k}}, `of rule "POST /orders/:id/pay", whose place it takes`},
		"wildcard below a wildcard":            {rules{{Endpoint: all, Key: "all"}}, rules{{Endpoint: all, Key: "all"}, {Endpoint: orders, Key: k}}, `of rule "*"`},
		"any method":                           {rules{{Endpoint: ruleset.HTTP("* /a"), Key: k}}, rules{{Endpoint: ruleset.HTTP("PUT /a"), Key: l}}, `of rule "* /a"`},

		"method beside a wildcard": {rules{{Endpoint: service, Key: k}}, rules{{Endpoint: service, Key: k}, {Endpoint: method, Key: l}}, ""}, // the method may already have had this key, from a lower layer
		"method":                   {rules{{Endpoint: service, Key: k}, {Endpoint: method, Key: l}}, rules{{Endpoint: service, Key: k}, {Endpoint: method, Key: k}}, `"order:#{path.id}" in place of "pay:#{path.id}"`},
		"methods of a wildcard":    {rules{{Endpoint: service, Key: k}}, rules{{Endpoint: service, Key: l}}, "in place of"},

		"partial":         {rules{{Endpoint: task(), Key: k}}, rules{{Endpoint: task(), WaitTime: time.Second}}, ""},
		"was partial":     {rules{{Endpoint: task(), WaitTime: time.Second}}, rules{{Endpoint: task(), Key: k}}, ""},
		"partial renamed": {rules{{Endpoint: task(), Key: k}}, rules{{Endpoint: task(), Name: "a", WaitTime: time.Second}, {Endpoint: task(), Name: "b", Key: l}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := refused(yamlSet(t, tc.old), yamlSet(t, tc.next))
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("got %v", ruleset.Invalid(got...))
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0].Error(), tc.want)):
				t.Errorf("got %v, want one problem with\n%s", ruleset.Invalid(got...), tc.want)
			}
		})
	}
}

func TestCompareLocks_EmptySets(t *testing.T) {
	t.Parallel()
	some := yamlSet(t, []ruleset.Rule{{Endpoint: task(), Key: "a"}})
	for _, pair := range [][2]*ruleset.Set{{nil, some}, {some, nil}, {nil, nil}} {
		if got := refused(pair[0], pair[1]); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	}
}

func TestCompareLocks_AllowRekey(t *testing.T) {
	t.Parallel()
	load := func(text string) *ruleset.Set {
		set, err := ruleset.Load("locks.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for _, tc := range []struct {
		old, next string
		want      int
	}{
		{keyed("a"), keyed("b"), 1},
		{keyed("a"), "allow_rekey: true\n" + keyed("b"), 0},
		{"allow_rekey: true\n" + keyed("a"), keyed("b"), 1}, // the permission of the old file does not count
	} {
		if got := refused(load(tc.old), load(tc.next)); len(got) != tc.want {
			t.Errorf("%s\nto\n%s\ngot %v, want %d problems", tc.old, tc.next, got, tc.want)
		}
	}
}

func TestCompareLocksAt_Kinds(t *testing.T) {
	t.Parallel()
	rules := func(kind ruleset.Kind) []*ruleset.Resolved {
		rule := ruleset.Rule{Name: "pay", Key: "a", Kind: kind}
		if kind == ruleset.Semaphore {
			rule.Permits = 3
		}
		list, err := ruleset.Resolve([]ruleset.Rule{rule})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, old := range ruleset.Kinds() {
		for _, next := range ruleset.Kinds() {
			got := refusedAt(rules(old), rules(next))
			if old == next {
				if len(got) > 0 {
					t.Errorf("%s, then %s: got %v", old, next, got)
				}
				continue
			}
			want := fmt.Sprintf("%q in place of %q", next, old)
			if len(got) != 1 || got[0].Field != "kind" || !strings.Contains(got[0].Message, want) {
				t.Errorf("%s, then %s: got %v", old, next, got)
			}
		}
	}
}

// rekeyCases contains changes of the rules in a file, one rule on each line, with a part of each problem that
// CompareLocks finds.
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
	"function of one set":             {"{func: '*', key: k}", "{func: '*', key: k}\n{func: t, key: l}", nil}, // the function may already have had this key, from a lower layer

	"keys exchanged":         {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: a, key: l}\n{http: POST /a, name: b, key: k}", nil},
	"names exchanged, moved": {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: b, key: k}\n{http: POST /a, name: c, key: l}", nil},
	"merged":                 {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, keys: [l, k]}", nil},
	"split":                  {"{http: POST /a, keys: [l, k]}", "{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", nil},
	"another rule has it":    {"{http: POST /a, name: a, key: k}\n{http: POST /a, name: b, key: l}", "{http: POST /a, name: b, key: k}", nil},
	"another rule gets it":   {"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: x}\n{http: POST /a, name: b, key: k}", nil},
	"isInvisible behind a lock that stays": {
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

func TestCompareLocks_Endpoints(t *testing.T) {
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
				t.Error("Diff marks a change of the lock")
			}
		})
	}
}

// manyRules returns rules of every method, with wildcards, like one large file.
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

// Each of many rules is compared separately. BenchmarkCompareLocks measures the cost: ten times as many rules
// take about ten times as long.
func TestCompareLocks_ManyRules(t *testing.T) {
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

// Each change is refused with advice for a first step. That step is accepted, and after it the whole change.
func TestCompareLocks_Steps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next string
		steps     []string // the advice of each problem
		between   string   // the rules after the first step
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
			[]string{`write a second rule with key: "k" first, roll it out everywhere, then remove that one; or allow_rekey: true`},
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

// CompareLocksAt does not compare rules whose key may come from a lower layer.
func TestCompareLocksAt_PartialRules(t *testing.T) {
	t.Parallel()
	partial := onlyRule(t, "rules:\n- {func: a, wait_time: 1s}\n")
	whole, other := onlyRule(t, "rules:\n- {func: a, key: k}\n"), onlyRule(t, "rules:\n- {func: a, key: l}\n")
	if !partial.Partial() || whole.Partial() {
		t.Fatal("want that only a rule without a key is partial")
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
