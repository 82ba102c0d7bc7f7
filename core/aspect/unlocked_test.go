package aspect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestRun_Disabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.Disabled = true
		checkUnlocked(t, b, rule, aspect.UnlockedDisabled, order{ID: "42"})
	})
}

func TestRun_WhenFalse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.When = "in.VIP"
		checkUnlocked(t, b, rule, aspect.UnlockedWhen, order{ID: "42"})

		c := &call{in: order{ID: "42", VIP: true}}
		out := mustCompile(t, mustAspect(t, b.locks), rule).Run(t.Context(), c)
		want(t, "cause when true", out.Cause, failpolicy.Busy)
		want(t, "evaluated", c.evaluated, 1)
	})
}

// checkUnlocked runs a rule whose key is taken and fails the test unless the handler runs.
func checkUnlocked(t *testing.T, b *bench, rule ruleset.Rule, why aspect.Unlocked, in order) {
	t.Helper()
	obs := &record{}
	p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
	b.redis.Take("order:42", time.Hour)
	c := &call{in: in, handle: func(_ context.Context, g aspect.Grant) error {
		want(t, "grant", g, aspect.Grant{Unlocked: why})
		return errHandler
	}}
	out := p.Run(t.Context(), c)
	want(t, "outcome", out, aspect.Outcome{Verdict: aspect.VerdictRan, Unlocked: why, Err: errHandler})
	want(t, "handled", c.handled, 1)
	if len(obs.unlocked) != 1 || obs.unlocked[0].Reason != why {
		t.Errorf("unlocked: got %+v", obs.unlocked)
	}
	want(t, "failures", len(obs.failures), 0)
	want(t, "decision", obs.last(t).Unlocked, why)
}

func TestAspect_Suspend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		rule := pay()
		rule.WaitTime = ruleset.NoWait
		p := mustCompile(t, a, rule)
		b.redis.Down()
		a.Suspend()
		want(t, "suspended", a.Suspended(), true)
		c := &call{in: order{ID: "42"}}
		want(t, "unlocked", p.Run(t.Context(), c).Unlocked, aspect.UnlockedDisabled)
		want(t, "handled", c.handled, 1)
		a.Resume()
		want(t, "cause", p.Run(t.Context(), c).Cause, failpolicy.Backend)
		want(t, "handled", c.handled, 1)
	})
}

func TestRun_UnlockedForSeveralReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.redis.Take("taken", time.Hour)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())),
			ruleset.Rule{Name: "when", Key: "a", When: "in.VIP"},
			ruleset.Rule{Name: "proceed", Key: "taken", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed},
			ruleset.Rule{Name: "off", Key: "b", Disabled: true},
		)
		out := p.Run(t.Context(), &call{})
		want(t, "unlocked", out.Unlocked, aspect.UnlockedProceed)
		want(t, "unlocked runs", len(obs.unlocked), 3)
	})
}

func TestRun_DryRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		provoke func(b *bench, c *call)
		cause   failpolicy.Cause
		shadow  bool // the shadow is held while the handler runs
	}{
		{"free", func(*bench, *call) {}, "", true},
		{"real lock taken", func(b *bench, _ *call) { b.redis.Take("order:42", time.Hour) }, failpolicy.Busy, true},
		{"shadow taken", func(b *bench, _ *call) { b.redis.Take("order:42"+aspect.ShadowSuffix, time.Hour) }, failpolicy.Busy, true},
		{"no key", func(_ *bench, c *call) { c.in.ID = "" }, failpolicy.Key, false},
		{"redis down", func(b *bench, _ *call) { b.redis.Down() }, failpolicy.Backend, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				obs := &record{}
				rule := pay()
				rule.DryRun = true
				p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
				c := &call{in: order{ID: "42"}}
				tc.provoke(b, c)
				c.handle = func(context.Context, aspect.Grant) error {
					if tc.shadow {
						b.wantHeld(t, "order:42"+aspect.ShadowSuffix)
					}
					if tc.cause == "" {
						b.wantFree(t, "order:42")
					}
					return errHandler
				}
				out := p.Run(t.Context(), c)
				want(t, "outcome", out, aspect.Outcome{Verdict: aspect.VerdictRan, Unlocked: aspect.UnlockedDryRun, Err: errHandler})
				d := obs.last(t)
				want(t, "dry run", d.DryRun, true)
				want(t, "cause", d.Cause, tc.cause)
				want(t, "failures", len(obs.failures), 0)
				want(t, "unlocked", len(obs.unlocked), 1)
			})
		})
	}
}

func TestRun_DryRunOfNestedCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := pay()
		rule.DryRun = true
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			return p.Run(ctx, &call{in: order{ID: "42"}}).Err
		}})
		for _, d := range obs.decisions {
			want(t, "cause", d.Cause, "")
		}
		b.wantFree(t, "order:42", "order:42"+aspect.ShadowSuffix)
	})
}

func TestRun_DryRunOfSeveralKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), ruleset.Rule{Name: "stock", Key: "stock:#{in.Items}", DryRun: true})
		b.redis.Take("stock:pear", time.Hour)
		c := &call{in: order{Items: []string{"apple", "pear"}}, handle: func(context.Context, aspect.Grant) error {
			b.wantHeld(t, "stock:apple"+aspect.ShadowSuffix, "stock:pear"+aspect.ShadowSuffix)
			return nil
		}}
		want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		want(t, "cause", obs.last(t).Cause, failpolicy.Busy)
	})
}

// At start-up, a warning names the endpoints that may run unlocked, whatever declares the rule.
func TestUnlocked_WarnsAtStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	proceed := "rules:\n  - {func: a, key: k, on_backend: proceed, on_busy: proceed}\n  - {func: b, key: k, on_backend: proceed}\n  - {func: off, key: k, disabled: true}\n  - {func: off/*, key: k, disabled: true}\n"
	for name, tt := range map[string]struct {
		set  *ruleset.Set
		want []string
	}{
		"locked":  {mustLoad(t, "rules:\n  - {func: a, key: k}\n"), nil},
		"none":    {mustLoad(t, "rules:\n  - {func: a, none: true}\n"), nil},
		"dry run": {file(t, ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "k", DryRun: true, OnBusy: failpolicy.Proceed}), []string{"rule of func a: dry_run: the endpoint runs unlocked, because a dry run only counts"}},
		"proceed": {mustLoad(t, proceed), []string{
			"locks.yaml:2:35: rule of func a: on_backend: the endpoint runs unlocked while Redis is down; so do func b",
			"locks.yaml:2:53: rule of func a: on_busy: the endpoint runs unlocked while another call has the lock",
			"locks.yaml:4:35: rule of func off: disabled: the endpoint runs unlocked; so do func off/*",
		}},
		"the whole file": {mustLoad(t, "disabled: true\nrules:\n  - {func: a, key: k}\n  - {func: b, key: k}\n"), []string{"locks.yaml:1:11: rule of func a: disabled: the endpoint runs unlocked; so do func b"}},
	} {
		for _, checked := range []bool{true, false} {
			var seen warnings
			a := mustAspect(t, b.observe(t, seen.observer()))
			r := aspect.NewRegistry(a, topics(a))
			table, err := r.Table(tt.set)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{"a", "b", "off", "off/1", "off/2"}
			if !checked {
				for _, name := range names {
					table.At(name)
				}
				if got := len(seen.take()); (got > 0) != (tt.want != nil) {
					t.Errorf("%s: %d warnings without Check", name, got)
				}
				continue
			}
			_ = a.Conclude(r.Check(names...)) // not all names have rules
			got := slices.DeleteFunc(seen.take(), func(s string) bool { return !strings.Contains(s, "runs unlocked") })
			wantTexts(t, got, tt.want...)
			_ = a.Conclude(r.Check(names...))
			wantTexts(t, seen.take())
		}
	}
}

// Rules in Go warn, too: of a wrapped function, and of a handler that an adapter places.
func TestUnlocked_WarnsOfRulesInGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var seen warnings
	a := mustAspect(t, b.observe(t, seen.observer()))
	mustWrap(t, a, ruleset.Rule{Name: "pay", Key: "pay", Disabled: true}, charge)
	wantTexts(t, seen.take(), "rule of func pay: Disabled: the endpoint runs unlocked")
	r := aspect.NewRegistry(a, topics(a))
	r.Place(r.Compile("placed", ruleset.Rule{Key: "k", OnKey: failpolicy.Proceed, OnOverload: failpolicy.Proceed}))
	wantTexts(t, seen.take(), "rule of func placed: OnKey: the endpoint runs unlocked for a request that yields no key", "OnOverload: the endpoint runs unlocked while too many calls wait")
}
