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

// offline is a lock client that is never asked for anything.
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

func TestCompile_ReportsEveryProblemOfEveryRule(t *testing.T) {
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

func TestCompile_ReportsProblemsOfTheRulesThemselves(t *testing.T) {
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

func TestCompile_NeedsALabel(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	if _, err := a.Compile(aspect.Site{}, ruleset.Rule{Key: "a"}); err == nil {
		t.Error("a rule without endpoint and name was accepted")
	}
	if _, err := a.Compile(aspect.Site{}, ruleset.Rule{Key: "a", Name: "pay"}); err != nil {
		t.Error(err)
	}
}

func TestCompile_NoFallbackRegistered(t *testing.T) {
	t.Parallel()
	s := site(t)
	s.Fallbacks = nil
	_, err := mustAspect(t, offline(t)).Compile(s, ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, Fallback: "queue"})
	golden.Assert(t, err.Error()+"\n", "no_fallback.txt")
}

func TestCompile_TellsTheRuleObservers(t *testing.T) {
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

func TestCompile_DefaultsAndProfilesOfTheAspect(t *testing.T) {
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

func TestCompileResolved_KeepsTheMoreExactEndpoint(t *testing.T) {
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

func TestNew_ReportsEveryBadOption(t *testing.T) {
	t.Parallel()
	none := func(context.Context, string) (string, error) { return "", nil }
	twice := aspect.WithFallback("queue", none)
	_, err := aspect.New(nil,
		nil,
		aspect.WithFallback("", none),
		twice,
		twice,
		aspect.WithFallback[string, string]("nothing", nil),
		aspect.WithProfile("default", ruleset.Rule{Key: "a"}),
		aspect.WithProfile("hasty", ruleset.Rule{WaitTime: 5}),
	)
	if err == nil {
		t.Fatal("accepted")
	}
	golden.Assert(t, err.Error()+"\n", "options.txt")
}
