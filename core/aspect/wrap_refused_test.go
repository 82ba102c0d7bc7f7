package aspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
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
