package aspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

func TestRun_KeyFaults(t *testing.T) {
	t.Parallel()
	for reason, http := range map[keyexpr.Reason]int{
		keyexpr.ReasonMissing:          400,
		keyexpr.ReasonRepeated:         400,
		keyexpr.ReasonBadBody:          400,
		keyexpr.ReasonTooLarge:         413,
		keyexpr.ReasonUnsupportedMedia: 415,
		keyexpr.ReasonUnset:            500,
		keyexpr.ReasonInternal:         500,
	} {
		t.Run(reason.String(), func(t *testing.T) {
			t.Parallel()
			var warned warnings
			rule := pay()
			rule.OnKey = failpolicy.Skip
			a := mustAspect(t, offline(t, core.WithObserver(warned.observer())))
			skipping, refusing := mustCompile(t, a, rule), mustCompile(t, a, pay())
			c := &call{env: failingEnv{&keyexpr.EvalError{Reason: reason, Detail: "#{in.ID} of a customer"}}}

			out := refusing.Run(t.Context(), c)
			want(t, "cause", out.Cause, failpolicy.Key)
			want(t, "status", out.Status.HTTP, http)
			out = skipping.Run(t.Context(), c)
			want(t, "a fault of the server is not skipped", out.Verdict == aspect.VerdictRefused, http == 500)
			want(t, "handled", c.handled, 0)

			skipping.Run(t.Context(), c)
			if len(warned) != 2 || !strings.Contains(warned[0].Error(), "#{in.ID} of a customer") {
				t.Errorf("observers got the warnings %v, want one for each rule", warned)
			}
		})
	}
}

func TestRun_KeyFaultsWarnOncePerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var warned warnings
		a := mustAspect(t, offline(t, core.WithObserver(warned.observer())))
		p := mustCompile(t, a, pay())
		refuse := func() {
			p.Run(t.Context(), &call{env: failingEnv{&keyexpr.EvalError{Reason: keyexpr.ReasonMissing, Subject: "in.ID"}}})
		}
		for range 3 {
			refuse()
		}
		want(t, "warnings", len(warned), 1)
		time.Sleep(time.Minute) // virtual time
		refuse()
		if len(warned) != 2 || !strings.Contains(warned[1].Error(), "(2 such requests since the last warning)") {
			t.Errorf("after a minute: observers got the warnings %v", warned)
		}
	})
}

func TestRun_KeyFaultOfAnUnknownError(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, mustAspect(t, offline(t)), pay())
	out := p.Run(t.Context(), &call{env: failingEnv{errors.New("database of principals is down")}})
	want(t, "status", out.Status, failpolicy.Status{HTTP: 500, GRPC: 13 /* INTERNAL */})
}

func TestRun_KeyFaultAfterTheCallerLeft(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, mustAspect(t, offline(t)), pay())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := p.Run(ctx, &call{env: failingEnv{&keyexpr.EvalError{Reason: keyexpr.ReasonBadBody}}})
	want(t, "cause", out.Cause, failpolicy.Canceled)
}

func TestRun_KeyFaultOfACondition(t *testing.T) {
	t.Parallel()
	rule := pay()
	rule.When = "in.VIP"
	p := mustCompile(t, mustAspect(t, offline(t)), rule)
	out := p.Run(t.Context(), &call{env: failingEnv{&keyexpr.EvalError{Reason: keyexpr.ReasonTooLarge}}})
	want(t, "cause", out.Cause, failpolicy.Key)
	want(t, "status", out.Status.HTTP, 413)
}

func TestRun_KeyIsEvaluatedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		c := &call{in: order{ID: "42"}}
		c.handle = func(context.Context, aspect.Grant) error {
			c.in.ID = "43"
			return nil
		}
		want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		want(t, "evaluated", c.evaluated, 1)
		b.wantFree(t, "order:42", "order:43")
	})
}

func TestRun_StrictKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := ruleset.Rule{Name: "strict", Key: "order:#{in.ID}:pay", KeyFormat: ruleset.Strict}
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		want(t, "cause", p.Run(t.Context(), &call{in: order{ID: "4:2"}}).Cause, failpolicy.Key)
		want(t, "cause", p.Run(t.Context(), &call{in: order{ID: "42"}}).Cause, "")
	})
}

func TestRun_TooManyKeys(t *testing.T) {
	t.Parallel()
	items := func(prefix string) []string {
		var list []string
		for i := range 60 {
			list = append(list, prefix+string(rune('A'+i%26))+string(rune('a'+i/26)))
		}
		return list
	}
	p := mustCompile(t, mustAspect(t, offline(t)), ruleset.Rule{Name: "x", Keys: []string{"a:#{in.Items}", "b:#{in.Items}"}})
	out := p.Run(t.Context(), &call{in: order{Items: items("x")}})
	want(t, "cause", out.Cause, failpolicy.Key)
	var e *keyexpr.EvalError
	if !errors.As(out.Reason, &e) || e.Reason != keyexpr.ReasonTooMany {
		t.Errorf("reason: got %v", out.Reason)
	}
}
