package aspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

var closeDay = ruleset.Func("close-day")

func TestWrap_SaysThatTheKeyIsMissing(t *testing.T) {
	t.Parallel()
	missing := `ruleset: rule of func close-day: Key: missing: write a template such as "order:pay:#{in.OrderID}"`
	empty := file(t)
	for name, tc := range map[string]struct {
		opts []aspect.Option
		rule ruleset.Rule
	}{
		"a name":              {nil, ruleset.Rule{Name: "close-day"}},
		"an endpoint":         {nil, ruleset.Rule{Endpoint: closeDay}},
		"a wait":              {nil, ruleset.Rule{Name: "close-day", WaitTime: time.Second}},
		"a wait, with a set":  {[]aspect.Option{aspect.WithSet(empty)}, ruleset.Rule{Name: "close-day", WaitTime: time.Second}},
		"no name, with a set": {[]aspect.Option{aspect.WithSet(empty)}, ruleset.Rule{Endpoint: closeDay, WaitTime: time.Second}},
	} {
		_, err := aspect.Wrap(mustAspect(t, offline(t), tc.opts...), tc.rule, charge)
		if err == nil || err.Error() != missing {
			t.Errorf("%s: got %v, want %s", name, err, missing)
		}
	}
}

func TestRefusedError_SaysWhichValueIsMissing(t *testing.T) {
	t.Parallel()
	keyed := func(key string) ruleset.Rule { return ruleset.Rule{Name: "pay", Key: key} }
	for name, tc := range map[string]struct {
		rule ruleset.Rule
		in   *order
		want string
	}{
		"empty":    {keyed("order:#{in.ID}"), &order{}, " (in.ID is empty)"},
		"nil":      {keyed("order:#{in.ID}"), nil, " (in is missing)"},
		"unusable": {ruleset.Rule{Name: "pay", Key: "order:#{in.ID}", KeyFormat: ruleset.Strict}, &order{ID: "of:somebody"}, ""},
	} {
		fn := mustWrap(t, mustAspect(t, offline(t)), tc.rule, func(context.Context, *order) (int, error) { return 0, nil })
		_, err := fn(t.Context(), tc.in)
		want := `lock rule "pay": key: The request does not identify the resource to lock` + tc.want
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestRefusedError_SaysNothingOfWhatTheServerLacks(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, mustAspect(t, offline(t)), pay())
	for _, reason := range []error{
		&keyexpr.EvalError{Reason: keyexpr.ReasonUnset, Subject: "tenant", Detail: "has no value"},
		&keyexpr.EvalError{Reason: keyexpr.ReasonInternal, Subject: "tenant", Detail: "cannot be computed"},
		errors.New("tenant"),
	} {
		out := p.Run(t.Context(), &call{env: badEnv{reason}})
		if text := out.Refusal().Error(); strings.Contains(text, "tenant") {
			t.Errorf("got %s", text)
		}
	}
}

// What is wrong with the expressions is told with what is wrong with the rest of the rule.
func TestCompile_TellsEveryProblemOfARuleAtOnce(t *testing.T) {
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
		"key and when":       {ruleset.Rule{Key: "a:#{in.Foo}", When: "in.Bar"}, []string{"When: 1:4: ", "Key: 1:8: "}},
		"key and #{when}":    {ruleset.Rule{Key: "a:#{in.Foo}", When: "#{in.VIP}"}, []string{"When: a condition is a bare", "Key: 1:8: "}},
		"no key and when":    {ruleset.Rule{When: "in.Bar"}, []string{"Key: missing", "When: 1:4: "}},
		"key and wait":       {ruleset.Rule{Key: "a:#{in.Foo}", WaitTime: 3}, []string{"WaitTime: 3ns", "Key: 1:8: "}},
		"keys, one of which": {ruleset.Rule{Keys: []string{"a:#{in.Foo}", " "}}, []string{"Keys[1]: blank", "Keys[0]: 1:8: "}},
		"a kind and a list":  {ruleset.Rule{Key: "a:#{in.Items}", Kind: "fiar"}, []string{"Kind: "}},
		"key and none":       {ruleset.Rule{Key: "a:#{in.Foo}", None: true}, []string{"Key: beside None"}},
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

func TestWrap_TellsOfTheFallbackAndTheKeyAtOnce(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t), aspect.WithFallback("queue", func(context.Context, string) (int, error) { return 0, nil }))
	_, err := aspect.Wrap(a, ruleset.Rule{Key: "a:#{in.Foo}", OnBusy: failpolicy.Fallback, Fallback: "queue"}, charge)
	if err == nil || !strings.Contains(err.Error(), "func(context.Context, string) (int, error)") || !strings.Contains(err.Error(), "no field Foo") {
		t.Errorf("got %v", err)
	}
}

func TestWrap_RefusesAnEndpointThatIsNoFunction(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	for name, tc := range map[string]struct {
		rule ruleset.Rule
		want string
	}{
		"a route": {
			ruleset.Rule{Name: "close-day", Endpoint: ruleset.HTTP("POST /close"), Key: "a"},
			`aspect: Wrap: the rule of http POST /close is not for a function: write Endpoint: ruleset.Func("close-day"), or remove it`,
		},
		"a method": {
			ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Days/Close"), Key: "a"},
			`aspect: Wrap: the rule of grpc /shop.Days/Close is not for a function: write Endpoint: ruleset.Func("aspect_test.charge"), or remove it`,
		},
		"a line break": {
			ruleset.Rule{Endpoint: ruleset.Func("close\nday"), Key: "a"},
			`Endpoint: "close\nday" has line breaks or control characters: write one line without them`,
		},
	} {
		_, err := aspect.Wrap(a, tc.rule, charge)
		if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
