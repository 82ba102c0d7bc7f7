package ruleset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Rules that take one key as two kinds of lock are an error if their keys are certainly equal.
func TestNewSet_MixedKinds(t *testing.T) {
	t.Parallel()
	pay, cancel := ruleset.HTTP("POST /orders/:id/pay"), ruleset.HTTP("POST /orders/:id/cancel")
	const k = "order:#{path.id}"
	fenced := ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Fenced}
	for name, tt := range map[string]struct {
		first, second ruleset.Rule
		want          string // a part of the only problem; "" for none
	}{
		"expression": {
			fenced,
			ruleset.Rule{Endpoint: cancel, Key: k},
			`rule of http POST /orders/:id/cancel: Kind: a reentrant lock of "order:#{path.id}", which is a fenced lock for the rule of http POST /orders/:id/pay, ` +
				`declared in the program: one key has one kind: write Kind: ruleset.Fenced, or another key`,
		},
		"named":           {ruleset.Rule{Endpoint: pay, Name: "p", Key: k, Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: k}, `for the rule "p" of http POST /orders/:id/pay`},
		"constant":        {ruleset.Rule{Endpoint: pay, Key: "a", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: "a"}, "write Kind: ruleset.Spin"},
		"list":            {ruleset.Rule{Endpoint: pay, Key: "a", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Keys: []string{"b", "a"}}, "write Kind: ruleset.Reentrant there, or another key"},
		"list first":      {ruleset.Rule{Endpoint: pay, Keys: []string{"b", "a"}}, ruleset.Rule{Endpoint: cancel, Key: "a", Kind: ruleset.Spin}, "write Kind: ruleset.Reentrant there, or another key"},
		"prefix":          {ruleset.Rule{Endpoint: pay, Key: "b", Prefix: "a:", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: "a:b"}, `of "a:b"`},
		"one condition":   {fenced, ruleset.Rule{Endpoint: cancel, Key: k, When: "true"}, "one key has one kind"},
		"same condition":  {ruleset.Rule{Endpoint: pay, Key: k, When: "true", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: k, When: "true"}, "one key has one kind"},
		"one endpoint":    {ruleset.Rule{Endpoint: pay, Name: "a", Key: "#{route}", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: pay, Name: "b", Key: "#{route}"}, "one key has one kind"},
		"word in literal": {ruleset.Rule{Endpoint: pay, Key: "route:#{path.id}", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: "route:#{path.id}"}, "one key has one kind"},
		"functions":       {ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "k", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: ruleset.Func("b"), Key: "k", Kind: ruleset.Fenced}, "one key has one kind"},

		"reader beside a plain lock": {ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Read}, ruleset.Rule{Endpoint: cancel, Key: k}, "write Kind: ruleset.Read, or another key"},
		"semaphore beside a lock": {
			ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Fair},
			ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Semaphore, Permits: 3},
			`Kind: a semaphore of "order:#{path.id}", which is a fair lock for the rule of http POST /orders/:id/pay, declared in the program`,
		},
		"two sizes": {
			ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Semaphore, Permits: 3},
			ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Semaphore, Permits: 5},
			`rule of http POST /orders/:id/cancel: Permits: 5 of "order:#{path.id}", which has 3 for the rule of http POST /orders/:id/pay, ` +
				`declared in the program: a semaphore has one number of permits: write Permits: 3, or another key`,
		},
		"reader and writer": {ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Read}, ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Write}, ""},
		"one size":          {ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Semaphore, Permits: 3}, ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Semaphore, Permits: 3}, ""},
		"same kind":         {fenced, ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Fenced}, ""},
		"another key":       {fenced, ruleset.Rule{Endpoint: cancel, Key: "order:#{path.Id}"}, ""},
		"another prefix":    {fenced, ruleset.Rule{Endpoint: cancel, Key: k, Prefix: "a:"}, ""},
		"two conditions":    {ruleset.Rule{Endpoint: pay, Key: k, When: "true", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: k, When: "false"}, ""},
		"route":             {ruleset.Rule{Endpoint: pay, Key: "#{route}", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: "#{route}"}, ""},
		"method":            {ruleset.Rule{Endpoint: pay, Key: "#{path.id}#{\":\" + method}", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: cancel, Key: "#{path.id}#{\":\" + method}"}, ""},
		"disabled":          {fenced, ruleset.Rule{Endpoint: cancel, Key: k, Disabled: true}, ""},
		"dry run":           {fenced, ruleset.Rule{Endpoint: cancel, Key: k, DryRun: true}, ""},
		"transports":        {ruleset.Rule{Endpoint: pay, Key: "a", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "a"}, ""},
		"of another layer?": {ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "k", Kind: ruleset.Spin}, ruleset.Rule{Endpoint: ruleset.Func("b"), Key: "k"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.NewSet([]ruleset.Rule{tt.first, tt.second})
			wantOnlyProblem(t, err, tt.want)
		})
	}
}

// A mistake that lower layers could correct is reported if there are no lower layers.
func TestSet_Overlay_MixedKindsWithoutLowerLayer(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n- {func: a, name: first, key: k}\n- {func: a, name: second, key: k, kind: fenced}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Overlay(ruleset.Func("a"))
	wantOnlyProblem(t, err, `rule "first" of func a: kind: a reentrant lock of "k", which is a fenced lock for the rule "second"`)
}

// The rules of an endpoint are compared with all their layers.
func TestSet_Overlay_MixedKinds(t *testing.T) {
	t.Parallel()
	const text = "rules:\n- {func: a, name: first, key: k}\n- {func: a, name: second, key: k, kind: fenced}\n"
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	first := func(kind ruleset.Kind) ruleset.Declared {
		return ruleset.Declared{Rule: ruleset.Rule{Endpoint: ruleset.Func("a"), Name: "first", Kind: kind}}
	}
	_, err = set.Overlay(ruleset.Func("a"), first(ruleset.Fenced))
	wantOnlyProblem(t, err, "")
	_, err = set.Overlay(ruleset.Func("a"), first(ruleset.Spin))
	wantOnlyProblem(t, err, `which is a spin lock for the rule "first" of func a, declared in locks.yaml:2:3: one key has one kind: write kind: spin, or another key`)
}

func TestResolve_MixedKinds(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Resolve([]ruleset.Rule{{Name: "first", Key: "k", Kind: ruleset.Spin}, {Name: "second", Key: "k"}})
	wantOnlyProblem(t, err, `rule "second": Kind: a reentrant lock of "k", which is a spin lock for the rule "first", declared in the program`)
}

// Among many rules with one key, only the rule with another kind is reported.
func TestNewSet_OneOfAnotherKind(t *testing.T) {
	t.Parallel()
	rules := make([]ruleset.Rule, 5)
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		rules[i] = ruleset.Rule{Endpoint: ruleset.Func(name), Key: "k", Kind: ruleset.Spin}
	}
	rules[2].Kind = ruleset.Fenced
	_, err := ruleset.NewSet(rules)
	wantOnlyProblem(t, err, "rule of func c: Kind: a fenced lock of \"k\", which is a spin lock for the rule of func a")
}

// A rule with the default kind is compared with a rule that states its kind, even if that rule comes later.
// Otherwise the first rule counts as right.
func TestMixedKinds_StatedKindFirst(t *testing.T) {
	t.Parallel()
	rule := func(name string, kind ruleset.Kind) ruleset.Rule {
		return ruleset.Rule{Endpoint: ruleset.HTTP("POST /" + name), Key: "k", Kind: kind}
	}
	several := ruleset.Rule{Endpoint: ruleset.HTTP("POST /both"), Keys: []string{"k", "l"}}
	for name, tt := range map[string]struct {
		rules []ruleset.Rule
		opts  []ruleset.Option
		want  []string // a part of each problem
	}{
		"the later one": {
			[]ruleset.Rule{rule("cancel", ""), rule("pay", ruleset.Fenced)},
			nil,
			[]string{"POST /cancel: Kind: a reentrant lock of \"k\", which is a fenced lock for the rule of http POST /pay, declared in the program: one key has one kind: write Kind: ruleset.Fenced"},
		},
		"each that is another one": {
			[]ruleset.Rule{rule("a", ""), rule("b", ruleset.Fenced), rule("c", ruleset.Spin), rule("d", "")},
			nil,
			[]string{"POST /c: Kind: a spin", "POST /a: Kind: a reentrant", "POST /d: Kind: a reentrant"},
		},
		"the default is stated, too": {
			[]ruleset.Rule{rule("a", ""), rule("b", ruleset.Fenced), rule("c", ruleset.Reentrant)},
			nil,
			[]string{"POST /c: Kind: a reentrant", "POST /a: Kind: a reentrant"},
		},
		"several keys have one kind": {
			[]ruleset.Rule{several, rule("a", ruleset.Spin)},
			nil,
			[]string{"POST /both: Kind: a reentrant lock of \"k\", which is a spin lock for the rule of http POST /a, declared in the program: one key has one kind: write Kind: ruleset.Reentrant there"},
		},
		"a profile states it": {
			[]ruleset.Rule{rule("a", ""), {Endpoint: ruleset.HTTP("POST /b"), Key: "k", Profile: "fenced"}},
			[]ruleset.Option{ruleset.WithProfile("fenced", ruleset.Rule{Kind: ruleset.Fenced})},
			[]string{"POST /a: Kind: a reentrant"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.NewSet(tt.rules, tt.opts...)
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok || len(invalid.Problems) != len(tt.want) {
				t.Fatalf("got %v, want %d problems", err, len(tt.want))
			}
			for i, want := range tt.want {
				if got := invalid.Problems[i].Error(); !strings.Contains(got, want) {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
}

// A rule with a wildcard counts as one rule, although it is listed for each method.
func TestMixedKinds_Wildcard(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve([]ruleset.Rule{
		{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Key: "k", Kind: ruleset.Fenced},
		{Endpoint: ruleset.GRPC("/shop.Orders/*"), Key: "l"},
	})
	if err != nil {
		t.Fatal(err)
	}
	wild := *rules[1]
	wild.Key = "k"
	if got := ruleset.MixedKinds([]*ruleset.Resolved{&wild, rules[0], &wild}); len(got) != 1 || got[0].Endpoint != wild.Endpoint {
		t.Errorf("got %v", got)
	}
}
