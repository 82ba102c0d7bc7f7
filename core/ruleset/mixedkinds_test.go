package ruleset_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Rules of two kinds about one key are an error where it is certain that they meet.
func TestNewSet_KindsOnOneKey(t *testing.T) {
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
		"list first":      {ruleset.Rule{Endpoint: pay, Keys: []string{"b", "a"}}, ruleset.Rule{Endpoint: cancel, Key: "a", Kind: ruleset.Spin}, "write Kind: ruleset.Reentrant, or another key"},
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
				`declared in the program: one semaphore has one size: write Permits: 3, or another key`,
		},
		"reader, then writer": {
			ruleset.Rule{Endpoint: pay, Name: "look", Key: k, Kind: ruleset.Read},
			ruleset.Rule{Endpoint: pay, Name: "change", Key: k, Kind: ruleset.Write},
			`rule "change" of http POST /orders/:id/pay: Kind: a write lock of "order:#{path.id}" inside of the read lock of the rule "look" of http POST /orders/:id/pay, ` +
				`declared in the program: a reader cannot become a writer, since another one may want the same: put this rule before that one, or write Kind: ruleset.Write there`,
		},
		"reader, then writer under a condition": {
			ruleset.Rule{Endpoint: pay, Name: "look", Key: k, Kind: ruleset.Read},
			ruleset.Rule{Endpoint: pay, Name: "change", Key: k, Kind: ruleset.Write, When: "true"},
			"a reader cannot become a writer",
		},
		"two permits": {
			ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Semaphore, Permits: 3},
			ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Semaphore, Permits: 3},
			`Kind: a second permit of "order:#{path.id}" beside that of the rule "a" of http POST /orders/:id/pay, declared in the program: ` +
				"calls with one permit each would wait for each other: remove one of the rules, or write another key",
		},

		"token inside of a lock without one": {
			ruleset.Rule{Endpoint: pay, Name: "a", Key: k},
			ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true},
			`rule "b" of http POST /orders/:id/pay: Token: a token of "order:#{path.id}", whose lock the call has by then without one, by the rule "a" of http POST /orders/:id/pay, ` +
				`declared in the program: who has a lock cannot draw its token later: write Token: true there, too, or remove it here`,
		},
		"token inside of a list": {
			ruleset.Rule{Endpoint: pay, Name: "a", Keys: []string{"b", k}},
			ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true},
			"who has a lock cannot draw its token later: put this rule before that one, which has several keys and therefore no token, or remove Token",
		},
		"token under a condition": {
			ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Write},
			ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Write, Token: true, When: "true"},
			"write Token: true there, too",
		},

		"token in both":         {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Token: true}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true}, ""},
		"token before a list":   {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Token: true}, ruleset.Rule{Endpoint: pay, Name: "b", Keys: []string{"b", k}}, ""},
		"token of a fenced one": {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Fenced}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Fenced, Token: true}, ""},
		"token elsewhere":       {ruleset.Rule{Endpoint: pay, Key: k}, ruleset.Rule{Endpoint: cancel, Key: k, Token: true}, ""},
		"token of another key":  {ruleset.Rule{Endpoint: pay, Name: "a", Key: "a"}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true}, ""},
		"token, or none":        {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, When: "true"}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true, When: "false"}, ""},
		"token beside disabled": {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Disabled: true}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Token: true}, ""},

		"reader and writer":   {ruleset.Rule{Endpoint: pay, Key: k, Kind: ruleset.Read}, ruleset.Rule{Endpoint: cancel, Key: k, Kind: ruleset.Write}, ""},
		"writer, then reader": {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Write}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Read}, ""},
		"writer again":        {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Write}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Write}, ""},
		"reader twice":        {ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Read}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Read}, ""},
		"reader, or writer": {
			ruleset.Rule{Endpoint: pay, Name: "a", Key: k, Kind: ruleset.Read, When: "true"}, ruleset.Rule{Endpoint: pay, Name: "b", Key: k, Kind: ruleset.Write, When: "false"}, "",
		},
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

// wantOnlyProblem looks for a text in the only problem; "" is for no error at all.
func wantOnlyProblem(t *testing.T, err error, want string) {
	t.Helper()
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	switch {
	case want == "" && err == nil:
	case !ok || len(invalid.Problems) != 1 || want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("got %v, want a problem with %q", err, want)
	}
}

// The token that a call has of a key is that of the first rule that takes it.
func TestNewSet_TokenOfTheFirst(t *testing.T) {
	t.Parallel()
	rule := func(name, when string, token bool) ruleset.Rule {
		return ruleset.Rule{Endpoint: ruleset.HTTP("POST /pay"), Name: name, Key: "k", When: when, Token: token}
	}
	for name, tt := range map[string]struct {
		rules []ruleset.Rule
		want  string // a part of the only problem; "" for none
	}{
		"always":                   {[]ruleset.Rule{rule("a", "", true), rule("b", "", false), rule("c", "", true)}, ""},
		"whenever the second":      {[]ruleset.Rule{rule("a", "true", true), rule("b", "true", false), rule("c", "", true)}, ""},
		"whenever the third":       {[]ruleset.Rule{rule("a", "true", true), rule("b", "", false), rule("c", "true", true)}, ""},
		"only sometimes":           {[]ruleset.Rule{rule("a", "true", true), rule("b", "", false), rule("c", "", true)}, `rule "c" of http POST /pay: Token: a token of "k", whose lock the call has by then without one, by the rule "b"`},
		"each is reported once":    {[]ruleset.Rule{rule("a", "", false), rule("b", "", false), rule("c", "", true)}, `by the rule "a"`},
		"the first one is in want": {[]ruleset.Rule{rule("a", "", false), rule("b", "", true)}, `by the rule "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.NewSet(tt.rules)
			wantOnlyProblem(t, err, tt.want)
		})
	}
}

// A writer that also reads is the writer that it was.
func TestNewSet_WriterUnderItsOwnReader(t *testing.T) {
	t.Parallel()
	rule := func(name, when string, kind ruleset.Kind) ruleset.Rule {
		return ruleset.Rule{Endpoint: ruleset.HTTP("POST /pay"), Name: name, Key: "k", When: when, Kind: kind}
	}
	look, again := rule("look", "", ruleset.Read), rule("again", "", ruleset.Write)
	_, err := ruleset.NewSet([]ruleset.Rule{rule("change", "", ruleset.Write), look, again})
	wantOnlyProblem(t, err, "")
	_, err = ruleset.NewSet([]ruleset.Rule{rule("change", "true", ruleset.Write), look, again})
	wantOnlyProblem(t, err, `rule "again" of http POST /pay: Kind: a write lock of "k" inside of the read lock of the rule "look"`)
}

// A lower layer may bring the token of the outer rule: that is known when all are there.
func TestOverlay_TokenInsideOfALockWithoutOne(t *testing.T) {
	t.Parallel()
	const refused = `rule "second" of func a: token: a token of "k", whose lock the call has by then without one, by the rule "first" of func a, declared in locks.yaml:2:3: ` +
		"who has a lock cannot draw its token later: write token: true there, too, or remove it here"
	load := func(first string) (*ruleset.Set, error) {
		return ruleset.Load("locks.yaml", []byte("rules:\n- {func: a, name: first, kind: fair, "+first+"}\n- {func: a, name: second, key: k, kind: fair, token: true}\n"))
	}
	set, err := load("key: k")
	if err != nil {
		t.Fatal(err)
	}
	first := func(token bool) ruleset.Declared {
		return ruleset.Code(ruleset.Rule{Endpoint: ruleset.Func("a"), Name: "first", Key: "k", Token: token})
	}
	_, err = set.Overlay(ruleset.Func("a"), first(true))
	wantOnlyProblem(t, err, "")
	_, err = set.Overlay(ruleset.Func("a"), first(false))
	wantOnlyProblem(t, err, refused)
	_, err = set.Overlay(ruleset.Func("a"))
	wantOnlyProblem(t, err, refused)
	_, err = load("key: k, token: false")
	wantOnlyProblem(t, err, refused)
}

// What the lower layers of a function could have said is judged also where there are none.
func TestOverlay_KindsOnOneKeyWithoutALowerLayer(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n- {func: a, name: first, key: k}\n- {func: a, name: second, key: k, kind: fenced}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Overlay(ruleset.Func("a"))
	wantOnlyProblem(t, err, `rule "first" of func a: kind: a reentrant lock of "k", which is a fenced lock for the rule "second"`)
}

// A token that cannot be read may be there.
func TestLoad_UnreadableTokenIsNotMissing(t *testing.T) {
	t.Parallel()
	for _, tokens := range [][2]string{{"maybe", "true"}, {"false", "maybe"}} {
		_, err := ruleset.Load("locks.yaml", []byte("profiles: {default: {token: true}}\nrules:\n"+
			"- {http: POST /a, name: first, key: k, token: "+tokens[0]+"}\n- {http: POST /a, name: second, key: k, token: "+tokens[1]+"}\n"))
		wantOnlyProblem(t, err, "maybe")
	}
}

// The rules of one place are judged with all their layers.
func TestOverlay_KindsOnOneKey(t *testing.T) {
	t.Parallel()
	const text = "rules:\n- {func: a, name: first, key: k}\n- {func: a, name: second, key: k, kind: fenced}\n"
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	first := func(kind ruleset.Kind) ruleset.Declared {
		return ruleset.Code(ruleset.Rule{Endpoint: ruleset.Func("a"), Name: "first", Kind: kind})
	}
	_, err = set.Overlay(ruleset.Func("a"), first(ruleset.Fenced))
	wantOnlyProblem(t, err, "")
	_, err = set.Overlay(ruleset.Func("a"), first(ruleset.Spin))
	wantOnlyProblem(t, err, `which is a spin lock for the rule "first" of func a, declared in locks.yaml:2:3: one key has one kind: write kind: spin, or another key`)
}

func TestResolve_KindsOnOneKey(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Resolve([]ruleset.Rule{{Name: "first", Key: "k", Kind: ruleset.Spin}, {Name: "second", Key: "k"}})
	wantOnlyProblem(t, err, `rule "second": Kind: a reentrant lock of "k", which is a spin lock for the rule "first", declared in the program`)
}

// Of many rules about a key only the odd one out is reported.
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

// The rule that states its kind is told to the one that leaves it to the default, wherever it
// stands; among those that state it, and among those that do not, the first one counts.
func TestMixedKinds_AdvisesTheKindThatIsStated(t *testing.T) {
	t.Parallel()
	rule := func(name string, kind ruleset.Kind) ruleset.Rule {
		return ruleset.Rule{Endpoint: ruleset.HTTP("POST /" + name), Key: "k", Kind: kind}
	}
	several := ruleset.Rule{Endpoint: ruleset.HTTP("POST /both"), Keys: []string{"k", "l"}}
	for name, tt := range map[string]struct {
		rules []ruleset.Rule
		opts  []ruleset.Option
		want  []string // of each problem
	}{
		"the later one": {
			[]ruleset.Rule{rule("cancel", ""), rule("pay", ruleset.Fenced)},
			nil,
			[]string{"POST /cancel: Kind: a reentrant lock of \"k\", which is a fenced lock for the rule of http POST /pay, declared in the program: one key has one kind: write Kind: ruleset.Fenced"},
		},
		"in the order of the rules": {
			[]ruleset.Rule{rule("a", ""), rule("b", ruleset.Fenced), rule("c", ruleset.Spin), rule("d", "")},
			nil,
			[]string{"POST /a: Kind: a reentrant", "POST /c: Kind: a spin", "POST /d: Kind: a reentrant"},
		},
		"the default is stated, too": {
			[]ruleset.Rule{rule("a", ""), rule("b", ruleset.Fenced), rule("c", ruleset.Reentrant)},
			nil,
			[]string{"POST /a: Kind: a reentrant", "POST /c: Kind: a reentrant"},
		},
		"several keys have one kind": {
			[]ruleset.Rule{several, rule("a", ruleset.Spin)},
			nil,
			[]string{"POST /a: Kind: a spin"},
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

// A rule with a wildcard that comes for each of its methods is one rule.
func TestMixedKinds_OfAWildcardIsReportedOnce(t *testing.T) {
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

// Rules with a wildcard are in order whatever number of methods they come for.
func TestMixedKinds_WildcardsInOrder(t *testing.T) {
	t.Parallel()
	all := ruleset.GRPC("/shop.Orders/*")
	rules, err := ruleset.Resolve([]ruleset.Rule{
		{Endpoint: all, Name: "change", Key: "k", Kind: ruleset.Write, Token: true},
		{Endpoint: all, Name: "look", Key: "k", Kind: ruleset.Read},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ruleset.MixedKinds(slices.Concat(rules, rules)); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
