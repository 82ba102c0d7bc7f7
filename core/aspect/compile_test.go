package aspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// offline returns a lock client for tests that take no lock.
func offline(tb testing.TB, opts ...core.Option) *core.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	locks, err := core.New(rdb, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(locks.Close(context.Background()), rdb.Close()); err != nil {
			tb.Error(err)
		}
	})
	return locks
}

func TestCompile_EveryProblemOfEveryRule(t *testing.T) {
	t.Parallel()
	_, err := mustAspect(t, offline(t)).Compile(site(t),
		ruleset.Rule{Name: "template", Key: "order:#{in.Id}"},
		ruleset.Rule{Name: "two templates", Keys: []string{"order:#{in.ID", "item:#{nothing}"}},
		ruleset.Rule{Name: "condition", Key: "a", When: "in.Vip"},
		ruleset.Rule{Name: "fallback", Key: "a", OnBusy: failpolicy.Fallback, Fallback: "quue"},
	)
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	places := []struct{ rule, field, message string }{
		{"template", "key", "write in.ID"},
		{"two templates", "keys[0]", "1:7"},
		{"two templates", "keys[1]", "nothing"},
		{"condition", "when", "write in.VIP"},
		{"fallback", "fallback", `write "queue"`},
	}
	if len(invalid.Problems) != len(places) {
		t.Fatalf("got %d problems, want %d:\n%v", len(invalid.Problems), len(places), err)
	}
	for i, place := range places {
		got := invalid.Problems[i]
		if got.Rule != place.rule || got.Field != place.field || !strings.Contains(got.Message, place.message) {
			t.Errorf("got %+v, want %+v", got, place)
		}
	}
	if found, ok := errors.AsType[*keyexpr.Error](invalid.Problems[2]); !ok || found.Unknown != "nothing" {
		t.Errorf("the problem of a name leads to %+v", found)
	}
}

func TestCompile_InvalidRules(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	for name, rules := range map[string][]ruleset.Rule{
		"none":       {},
		"no key":     {{Name: "x"}},
		"same names": {{Name: "x", Key: "a"}, {Name: "x", Key: "b"}},
		"unnamed":    {{Key: "a"}, {Key: "b"}},
	} {
		_, err := a.Compile(site(t), rules...)
		if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok {
			t.Errorf("%s: got %v, want an InvalidError", name, err)
		}
	}
}

func TestCompile_NameMissing(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	if _, err := a.Compile(aspect.Site{}, ruleset.Rule{Key: "a"}); err == nil {
		t.Error("a rule without endpoint and name was accepted")
	}
	if _, err := a.Compile(aspect.Site{}, ruleset.Rule{Key: "a", Name: "pay"}); err != nil {
		t.Error(err)
	}
}

func TestCompile_FallbackMissing(t *testing.T) {
	t.Parallel()
	s := site(t)
	s.Fallbacks = nil
	_, err := mustAspect(t, offline(t)).Compile(s, ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, Fallback: "queue"})
	golden.Assert(t, err.Error()+"\n", "no_fallback.txt")
}

func TestCompile_NotifiesRuleObservers(t *testing.T) {
	t.Parallel()
	obs := &record{}
	p := mustCompile(t, mustAspect(t, offline(t, core.WithObserver(obs.observer()))),
		ruleset.Rule{Name: "pay", Key: "order:#{in.ID}", OnBackend: failpolicy.Skip}, ruleset.Rule{
			Name: "off", Key: "a", Disabled: true, WaitTime: ruleset.NoWait, LeaseTime: time.Minute,
		})
	if len(obs.rules) != 2 {
		t.Fatalf("got %+v", obs.rules)
	}
	want(t, "name", obs.rules[0].Rule, "pay")
	want(t, "policy", obs.rules[0].Policy.OnBackend, failpolicy.Skip)
	want(t, "disabled", obs.rules[1].Disabled, true)
	want(t, "wait", obs.rules[0].WaitTime, ruleset.DefaultWaitTime)
	want(t, "lease that is renewed", obs.rules[0].LeaseTime, 0)
	want(t, "no wait", obs.rules[1].WaitTime, 0)
	want(t, "fixed lease", obs.rules[1].LeaseTime, time.Minute)
	want(t, "rules", len(p.Rules()), 2)
	want(t, "endpoint", p.Endpoint(), ruleset.Func("pay"))
	want(t, "uses in", p.Uses("in"), true)
	want(t, "uses body", p.Uses("body"), false)
}

func TestCompile_DefaultsAndProfiles(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t),
		aspect.WithProfile("default", ruleset.Rule{Prefix: "shop:"}),
		aspect.WithProfile("reports", ruleset.Rule{WaitTime: time.Minute}),
	)
	r := mustCompile(t, a, ruleset.Rule{Key: "a", Profile: "reports"}).Rules()[0]
	want(t, "prefix", r.Prefix, "shop:")
	want(t, "wait", r.WaitTime, time.Minute)
	want(t, "name", r.Name, "pay")
}

func TestCompile_MoreExactEndpoint(t *testing.T) {
	t.Parallel()
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("*"), Name: "any", Key: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	obs := &record{}
	if _, err := mustAspect(t, offline(t, core.WithObserver(obs.observer()))).CompileResolved(site(t), set.Match(ruleset.Func("pay"))...); err != nil {
		t.Fatal(err)
	}
	want(t, "endpoint", obs.rules[0].Endpoint, ruleset.Func("pay"))
}

// Compile refuses a rule whose keys may be too long for the client.
func TestCompile_RoomForKeys(t *testing.T) {
	t.Parallel()
	const variable, constant = "order:#{in.ID}", "close-day"
	long := strings.Repeat("p", 600)
	mapper := func(n int) core.Option {
		return core.WithNameMapper(func(name string) string { return name + strings.Repeat("m", n) })
	}
	tests := []struct {
		name        string
		prefix, key string
		opts        []core.Option
		field, want string // of the problem; "" for none
	}{
		{"defaults", "shop:", variable, nil, "", ""},
		{"a prefix longer than a key", long, variable, nil, "prefix", "has 600 bytes: write one of at most 464"},
		{"a prefix that leaves room for the hash alone", long[:470], variable, nil, "prefix", "at most 464"},
		{"a prefix that leaves room", long[:464], variable, nil, "", ""},
		{"literals longer than a key", "", long + variable, nil, "key", "every key has at least 607 bytes"},
		{"the client's keys are too short", "", variable, []core.Option{core.WithMaxKeyLength(400)}, "key", "core.WithMaxKeyLength(520)"},
		{"the client's prefix is too long", "", variable, []core.Option{core.WithPrefix(long)}, "key", "core.WithMaxKeyLength(1120)"},
		{"the client's prefix is what to shorten", "", variable, []core.Option{core.WithPrefix(long)}, "key", "that its core.WithPrefix adds"},
		{"the client's mapper leaves room", "", variable, []core.Option{mapper(504)}, "", ""},
		{"the client's mapper adds too much", "", variable, []core.Option{mapper(505)}, "key", "room for 519 besides the bytes that its core.WithNameMapper adds: write core.WithMaxKeyLength(1025)"},
		{"a mapper that makes keys shorter", "", variable, []core.Option{core.WithNameMapper(core.KeyHash)}, "", ""},
		{"a constant key fits", "", constant, []core.Option{core.WithMaxKeyLength(400)}, "", ""},
		{"a constant key does not", "", strings.Repeat("k", 400), []core.Option{core.WithMaxKeyLength(400)}, "key", "core.WithMaxKeyLength(408)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := mustAspect(t, offline(t, tt.opts...)).Compile(site(t), ruleset.Rule{Name: "pay", Key: tt.key, Prefix: tt.prefix})
			problem, found := errors.AsType[*ruleset.Problem](err)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (!found || problem.Field != tt.field || !strings.Contains(problem.Message, tt.want)):
				t.Errorf("got %v, want %q of %s", err, tt.want, tt.field)
			}
		})
	}
}

// Problems of expressions are reported together with the other problems of the rule.
func TestCompile_ExpressionsBesideOtherProblems(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	registry := aspect.NewRegistry(a, aspect.Adapter[ruleset.Endpoint, int]{
		Transport: ruleset.TransportFunc,
		Endpoint:  func(e ruleset.Endpoint) ruleset.Endpoint { return e },
		Compile: func(_ *ruleset.Set, _ ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, int, error) {
			point, err := a.Prepare(site(t), rules...)
			return point, 0, err
		},
	})
	for name, tc := range map[string]struct {
		rule ruleset.Rule
		want []string
	}{
		"key and when":        {ruleset.Rule{Key: "a:#{in.Foo}", When: "in.Bar"}, []string{"When: 1:4: ", "Key: 1:8: "}},
		"key and #{when}":     {ruleset.Rule{Key: "a:#{in.Foo}", When: "#{in.VIP}"}, []string{"When: a condition is a bare", "Key: 1:8: "}},
		"no key and when":     {ruleset.Rule{When: "in.Bar"}, []string{"Key: missing", "When: 1:4: "}},
		"key and wait":        {ruleset.Rule{Key: "a:#{in.Foo}", WaitTime: 3}, []string{"WaitTime: 3ns", "Key: 1:8: "}},
		"one of several keys": {ruleset.Rule{Keys: []string{"a:#{in.Foo}", " "}}, []string{"Keys[1]: blank", "Keys[0]: 1:8: "}},
		"a kind and a list":   {ruleset.Rule{Key: "a:#{in.Items}", Kind: "fiar"}, []string{"Kind: "}},
		"key and none":        {ruleset.Rule{Key: "a:#{in.Foo}", None: true}, []string{"Key: given together with None"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named := tc.rule
			named.Endpoint = closeDay
			_, wrapped := aspect.Wrap(a, named, charge)
			_, compiled := a.Compile(site(t), named)
			for how, err := range map[string]error{"Wrap": wrapped, "Compile": compiled, "Registry": registry.Compile(closeDay, named).Err} {
				invalid, _ := errors.AsType[*ruleset.InvalidError](err)
				if invalid == nil || len(invalid.Problems) != len(tc.want) {
					t.Errorf("%s: got %v, want %d problems", how, err, len(tc.want))
					continue
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got %v, want %q in it", how, err, want)
					}
				}
			}
		})
	}
}
