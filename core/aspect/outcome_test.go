package aspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

func TestRefusedError_MissingValue(t *testing.T) {
	t.Parallel()
	keyed := func(key string) ruleset.Rule { return ruleset.Rule{Name: "pay", Key: key} }
	for name, tc := range map[string]struct {
		rule ruleset.Rule
		in   *order
		want string
	}{
		"empty":    {keyed("order:#{in.ID}"), &order{}, " (in.ID is empty)"},
		"nil":      {keyed("order:#{in.ID}"), nil, " (in is missing)"},
		"unusable": {ruleset.Rule{Name: "pay", Key: "order:#{in.ID}", KeyFormat: ruleset.Strict}, &order{ID: "of:another"}, ""},
	} {
		fn := mustWrap(t, mustAspect(t, offline(t)), tc.rule, func(context.Context, *order) (int, error) { return 0, nil })
		_, err := fn(t.Context(), tc.in)
		want := `lock rule "pay": key: The request does not identify the resource to lock` + tc.want
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestRefusedError_ValueOfTheServer(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, mustAspect(t, offline(t)), pay())
	for _, reason := range []error{
		&keyexpr.EvalError{Reason: keyexpr.ReasonUnset, Subject: "tenant", Detail: "has no value"},
		&keyexpr.EvalError{Reason: keyexpr.ReasonInternal, Subject: "tenant", Detail: "cannot be computed"},
		errors.New("tenant"),
	} {
		out := p.Run(t.Context(), &call{env: failingEnv{reason}})
		if text := out.Refusal().Error(); strings.Contains(text, "tenant") {
			t.Errorf("got %s", text)
		}
	}
}

// Such a refusal has no cause, because the program and not the request is at fault.
func TestMisconfigured_Error(t *testing.T) {
	t.Parallel()
	refused := aspect.Misconfigured(ruleset.Func("pay"), errors.New("a rule does not compile"))
	if got, want := refused.Error(), `lock rule "pay": The request could not be completed`; got != want || !refused.Misconfigured {
		t.Errorf("got %q, Misconfigured %v, want %q and true", got, refused.Misconfigured, want)
	}
}
