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
)

// payAs is the rule pay with another kind of lock.
func payAs(kind ruleset.Kind) ruleset.Rule {
	rule := pay()
	rule.Kind = kind
	return rule
}

// counter is where the tokens of a fenced lock are drawn.
func counter(name string) string { return "redisson_lock_token:{" + name + "}" }

// tokenOf runs a rule and gives the token that its handler saw.
func tokenOf(t *testing.T, p *aspect.Point, id string) (token int64) {
	t.Helper()
	out := p.Run(t.Context(), &call{in: order{ID: id}, handle: func(ctx context.Context, g aspect.Grant) error {
		held, ok := core.Held(ctx, "order:"+id)
		if !ok || held.Token() != g.Token || g.Hold.Token() != g.Token {
			t.Errorf("got the tokens %d, %d and %d", g.Token, g.Hold.Token(), held.Token())
		}
		token = g.Token
		return nil
	}})
	want(t, "verdict", out.Verdict, aspect.VerdictRan)
	return token
}

// seenKinds are the kinds of the acquisitions that core told of.
type seenKinds struct{ list []core.Kind }

func (s *seenKinds) ObserveAcquireEnd(_ context.Context, r core.AcquireResult) {
	s.list = append(s.list, r.Kind)
}

// eachKind runs a test in a bubble for each kind of lock.
func eachKind(t *testing.T, test func(t *testing.T, kind ruleset.Kind)) {
	t.Helper()
	for _, kind := range ruleset.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, kind) })
		})
	}
}

func TestKind_EachTakesItsLock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		seen, obs := &seenKinds{}, &record{}
		b := newBench(t, core.WithObserver(seen))
		p := mustCompile(t, mustAspect(t, b.locks, aspect.WithObserver(obs)), payAs(kind))
		var tokens []int64
		for range 3 {
			tokens = append(tokens, tokenOf(t, p, "42"))
		}
		for i, token := range tokens {
			rising := int64(0)
			if kind == ruleset.Fenced {
				rising = int64(i + 1)
			}
			want(t, "token", token, rising)
		}
		for _, got := range seen.list {
			want(t, "kind for core's observers", got, core.Kind(kind))
		}
		want(t, "kind for the observers", obs.last(t).Kind, kind)
		b.wantFree(t, "order:42")
	})
}

func TestKind_BusyIsBusy(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		b := newBench(t)
		b.redis.Take("order:42", time.Hour)
		rule := payAs(kind)
		rule.WaitTime = time.Second
		begin := time.Now()
		out := mustCompile(t, mustAspect(t, b.locks), rule).Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "cause", out.Cause, failpolicy.Busy)
		want(t, "waited", time.Since(begin), time.Second)
	})
}

// A nested call has the token of the hold that it re-enters.
func TestKind_NestedCallHasTheTokenOfTheOuter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), payAs(ruleset.Fenced))
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, outer aspect.Grant) error {
			return p.Run(ctx, &call{in: order{ID: "42"}, handle: func(_ context.Context, inner aspect.Grant) error {
				want(t, "outer token", outer.Token, 1)
				want(t, "inner token", inner.Token, 1)
				return nil
			}}).Err
		}})
		b.wantFree(t, "order:42")
	})
}

// Of several rules the last one with a token counts, and the last one with a lock.
func TestKind_TokenOfSeveralRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks),
			ruleset.Rule{Name: "first", Key: "a", Kind: ruleset.Fenced},
			ruleset.Rule{Name: "second", Key: "b", Kind: ruleset.Fenced},
			ruleset.Rule{Name: "third", Key: "c"},
		)
		b.rdb.Set(t.Context(), counter("b"), 8, 0)
		p.Run(t.Context(), &call{handle: func(ctx context.Context, g aspect.Grant) error {
			want(t, "token", g.Token, 9)
			want(t, "token of the hold", g.Hold.Token(), 0)
			first, _ := core.Held(ctx, "a")
			want(t, "token of the first", first.Token(), 1)
			return nil
		}})
	})
}

func TestKind_Debounce(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		b := newBench(t)
		rule := submit()
		rule.Kind = kind
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		first := tokenOf(t, p, "42")
		b.wantHeld(t, "order:42")
		out := p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "inside the window", out.Cause, failpolicy.Debounced)
		time.Sleep(5*time.Second + 100*time.Millisecond) // in the time of the bubble
		if second := tokenOf(t, p, "42"); kind == ruleset.Fenced && second <= first {
			t.Errorf("token %d after %d, want a larger one", second, first)
		}
		failing := &call{in: order{ID: "43"}, handle: func(context.Context, aspect.Grant) error { return errHandler }}
		want(t, "failure", p.Run(t.Context(), failing).Err, errHandler)
		b.wantFree(t, "order:43")
	})
}

// A dry run of a fenced rule leaves no counter behind, and draws no token.
func TestKind_DryRun(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		b, obs := newBench(t), &record{}
		rule := payAs(kind)
		rule.DryRun = true
		p := mustCompile(t, mustAspect(t, b.locks, aspect.WithObserver(obs)), rule)
		c := &call{in: order{ID: "42"}, handle: func(_ context.Context, g aspect.Grant) error {
			want(t, "grant", g, aspect.Grant{Unlocked: aspect.UnlockedDryRun})
			b.wantHeld(t, "order:42"+aspect.ShadowSuffix)
			return nil
		}}
		p.Run(t.Context(), c)
		want(t, "cause", obs.last(t).Cause, "")
		if keys := b.rdb.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
		b.redis.Take("order:42", time.Hour)
		p.Run(t.Context(), c)
		want(t, "cause", obs.last(t).Cause, failpolicy.Busy)
	})
}

func TestKind_OfOneKeyRefusesAList(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	for _, kind := range ruleset.Kinds() {
		for field, rule := range map[string]ruleset.Rule{
			"key":     {Name: "x", Kind: kind, Key: "stock:#{in.Items}"},
			"keys[0]": {Name: "x", Kind: kind, Keys: []string{"stock:#{in.Items}"}},
		} {
			_, err := a.Compile(site(t), rule)
			if kind == ruleset.Reentrant {
				want(t, "of a reentrant lock", err, nil)
				continue
			}
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != field ||
				!strings.Contains(invalid.Problems[0].Message, "a "+string(kind)+" lock has one") {
				t.Errorf("%s of a %s lock: got %v", field, kind, err)
			}
		}
		if _, err := a.Compile(site(t), ruleset.Rule{Name: "x", Kind: kind, Keys: []string{"stock:#{in.ID}"}}); err != nil {
			t.Errorf("a list of one template: %v", err)
		}
	}
}

func TestKind_OfOneKeyRefusesSeveralTemplates(t *testing.T) {
	t.Parallel()
	_, err := mustAspect(t, offline(t)).Compile(site(t), ruleset.Rule{Name: "x", Kind: ruleset.Fenced, Keys: []string{"a", "b"}})
	if err == nil || !strings.Contains(err.Error(), "Kind: a fenced lock has one key, and Keys has 2 templates") {
		t.Errorf("got %v", err)
	}
}
