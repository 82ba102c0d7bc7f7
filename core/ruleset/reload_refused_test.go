package ruleset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// yamlSet is a set of rules as a file would declare them.
func yamlSet(t *testing.T, rules []ruleset.Rule) *ruleset.Set {
	t.Helper()
	var declared []ruleset.Declared
	for i, r := range rules {
		declared = append(declared, ruleset.Declared{
			Rule: r, Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 2 * (i + 1), Column: 5},
		})
	}
	set, err := ruleset.BuildSet(declared)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestCompareLocks_Refuses(t *testing.T) {
	t.Parallel()
	type rules = []ruleset.Rule
	pay, orders, all := ruleset.HTTP("POST /orders/:id/pay"), ruleset.HTTP("POST /orders/*"), ruleset.HTTP("*")
	service, method := ruleset.GRPC("/shop.Orders/*"), ruleset.GRPC("/shop.Orders/Pay")
	const k, l = "order:#{path.id}", "pay:#{path.id}"
	for name, tc := range map[string]struct {
		old, next rules
		want      string // "" for nothing, else a part of the only problem
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

		"came":               {nil, rules{{Endpoint: pay, Key: k}}, ""},
		"went":               {rules{{Endpoint: pay, Key: k}}, nil, ""},
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

		"method beside a wildcard": {rules{{Endpoint: service, Key: k}}, rules{{Endpoint: service, Key: k}, {Endpoint: method, Key: l}}, ""}, // it may have had this key before
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

func TestCompareLocks_OfEmptySets(t *testing.T) {
	t.Parallel()
	some := yamlSet(t, []ruleset.Rule{{Endpoint: task(), Key: "a"}})
	for _, pair := range [][2]*ruleset.Set{{nil, some}, {some, nil}, {nil, nil}} {
		if got := refused(pair[0], pair[1]); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	}
}

func TestCompareLocks_MayBeAllowed(t *testing.T) {
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
		{"allow_rekey: true\n" + keyed("a"), keyed("b"), 1}, // what the old file allowed counts no more
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
