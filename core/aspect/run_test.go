package aspect_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// pay returns the rule that most of these tests use.
func pay() ruleset.Rule { return ruleset.Rule{Name: "pay", Key: "order:#{in.ID}"} }

func TestRun_HandlerHoldsTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), pay())
		type key struct{}
		c := &call{in: order{ID: "42"}, handle: func(ctx context.Context, g aspect.Grant) error {
			b.wantHeld(t, "order:42")
			if hold, ok := core.Held(ctx, "order:42"); !ok || hold != g.Hold {
				t.Errorf("Held: got %v, %v, want the hold of the grant", hold, ok)
			}
			want(t, "value of the caller's context", ctx.Value(key{}), any("kept"))
			want(t, "unlocked", g.Unlocked, "")
			return nil
		}}
		out := p.Run(context.WithValue(t.Context(), key{}, "kept"), c)
		want(t, "outcome", out, aspect.Outcome{Verdict: aspect.VerdictRan})
		want(t, "handled", c.handled, 1)
		want(t, "evaluated", c.evaluated, 1)
		b.wantFree(t, "order:42")
		d := obs.last(t)
		want(t, "decision", d.Subject, aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant})
		want(t, "failures", len(obs.failures)+len(obs.unlocked)+len(obs.releases), 0)
	})
}

func TestRun_ErrorOfTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error { return errHandler }}
		out := p.Run(t.Context(), c)
		want(t, "error", out.Err, errHandler)
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		b.wantFree(t, "order:42")
	})
}

func TestRun_FailedRelease(t *testing.T) {
	t.Parallel()
	for _, result := range []error{nil, errHandler} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			obs := &record{}
			p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), pay())
			c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
				b.redis.Down()
				return result
			}}
			out := p.Run(t.Context(), c)
			want(t, "error", out.Err, result)
			want(t, "verdict", out.Verdict, aspect.VerdictRan)
			want(t, "lost", out.Lost, false)
			if len(obs.releases) != 1 {
				t.Fatalf("got %d release failures, want 1", len(obs.releases))
			}
			wantErr(t, "release failure", obs.releases[0].Err, core.ErrUnavailable)
		})
	}
}

func TestRun_ReleasesAfterTheCallerLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		ctx, cancel := context.WithCancel(t.Context())
		c := &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}}
		out := p.Run(ctx, c)
		want(t, "error", out.Err, context.Canceled)
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		b.wantFree(t, "order:42")
	})
}

func TestRun_PanicAndGoexit(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				obs := &record{}
				p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), pay(),
					ruleset.Rule{Name: "second", Key: "second", Debounce: time.Minute})
				c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error { end(); return nil }}
				var recovered any
				returned := false
				var done sync.WaitGroup
				done.Go(func() {
					defer func() { recovered = recover() }()
					p.Run(t.Context(), c)
					returned = true
				})
				done.Wait()
				want(t, "returned", returned, false)
				if name == "panic" {
					want(t, "recovered", recovered, any("boom"))
				}
				b.wantFree(t, "order:42", "second")
				want(t, "decisions", len(obs.decisions), 2)
			})
		})
	}
}

func TestRun_EachStrategyForEachCause(t *testing.T) {
	t.Parallel()
	causes := map[failpolicy.Cause]func(b *bench, c *call){
		failpolicy.Busy:    func(b *bench, _ *call) { b.redis.Take("order:42", time.Hour) },
		failpolicy.Backend: func(b *bench, _ *call) { b.redis.Down() },
		failpolicy.Key:     func(_ *bench, c *call) { c.in.ID = "" },
	}
	for cause, provoke := range causes {
		for _, s := range failpolicy.Strategies() {
			t.Run(string(cause)+"/"+string(s), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					obs := &record{}
					checkStrategy(t, newBench(t, core.WithObserver(obs.observer())), obs, cause, s, provoke)
				})
			})
		}
	}
}

func checkStrategy(t *testing.T, b *bench, obs *record, cause failpolicy.Cause, s failpolicy.Strategy, provoke func(*bench, *call)) {
	t.Helper()
	rule := pay()
	rule.WaitTime = time.Second
	rule.OnBusy, rule.OnBackend, rule.OnKey = s, s, s
	if s == failpolicy.Fallback {
		rule.Fallback = "queue"
	}
	p := mustCompile(t, mustAspect(t, b.locks), rule)
	c := &call{in: order{ID: "42"}}
	c.handle = func(_ context.Context, g aspect.Grant) error {
		want(t, "grant", g, aspect.Grant{Unlocked: aspect.UnlockedProceed})
		return errHandler
	}
	c.fallback = func(ctx context.Context) error {
		out, ok := aspect.OutcomeFrom(ctx)
		want(t, "OutcomeFrom", ok, true)
		want(t, "cause in the fallback", out.Cause, cause)
		return errHandler
	}
	provoke(b, c)
	out := p.Run(t.Context(), c)

	want(t, "cause", out.Cause, cause)
	want(t, "rule", out.Rule.Name, "pay")
	verdicts := map[failpolicy.Strategy]aspect.Verdict{
		failpolicy.Error: aspect.VerdictRefused, failpolicy.Fallback: aspect.VerdictFallback, failpolicy.Proceed: aspect.VerdictRan,
	}
	reply, _ := s.Reply()
	want(t, "verdict", out.Verdict, cmp.Or(verdicts[s], aspect.VerdictAnswered))
	want(t, "reply", out.Reply, reply)
	want(t, "handler ran", c.handled == 1, s == failpolicy.Proceed)
	want(t, "fallback ran", c.fallbacks == 1, s == failpolicy.Fallback)
	want(t, "error", errors.Is(out.Err, errHandler), s == failpolicy.Proceed || s == failpolicy.Fallback)
	refusal := out.Refusal()
	want(t, "refusal", refusal != nil, s == failpolicy.Error)
	if refusal != nil {
		want(t, "status", refusal.Status, cause.Status())
		want(t, "message", refusal.Message, cause.Title())
		if text := refusal.Error(); strings.Contains(text, "42") {
			t.Errorf("the text contains the key: %s", text)
		}
	}
	if len(obs.failures) != 1 || obs.failures[0].Cause != cause || obs.failures[0].Strategy != s {
		t.Errorf("failures: got %+v", obs.failures)
	}
	want(t, "unlocked runs", len(obs.unlocked), map[bool]int{true: 1}[s == failpolicy.Proceed])
	want(t, "decision", obs.last(t).Verdict, out.Verdict)
}

func TestRun_RefusalWrapsTheReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.WaitTime, rule.Message = ruleset.NoWait, "Please wait for your first payment"
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		b.redis.Take("order:42", time.Hour)
		out := p.Run(t.Context(), &call{in: order{ID: "42"}})
		refusal := out.Refusal()
		wantErr(t, "refusal", refusal, core.ErrNotAcquired)
		want(t, "message", refusal.Message, rule.Message)
		want(t, "text", refusal.Error(), `lock rule "pay": busy: `+rule.Message)
	})
}

func TestRun_Overload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.MaxWaiters = 1
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		b.redis.Take("order:42", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { p.Run(ctx, &call{in: order{ID: "42"}}) })
		synctest.Wait()
		out := p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "cause", out.Cause, failpolicy.Overload)
		want(t, "status", out.Status, failpolicy.Overload.Status())
		cancel()
		waiting.Wait()
	})
}

func TestRun_EndOfTheCallerAsksNoStrategy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.OnBusy, rule.OnBackend, rule.OnKey = failpolicy.Proceed, failpolicy.Proceed, failpolicy.Proceed
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		b.redis.Take("order:42", time.Hour)
		c := &call{in: order{ID: "42"}}

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		out := p.Run(ctx, c)
		want(t, "cause of a cancel", out.Cause, failpolicy.Canceled)
		want(t, "verdict", out.Verdict, aspect.VerdictRefused)
		want(t, "status", out.Status, failpolicy.Canceled.Status())

		ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		out = p.Run(ctx, c)
		want(t, "cause of a deadline", out.Cause, failpolicy.Deadline)
		want(t, "handled", c.handled, 0)
	})
}

func TestRun_EarlyReleaseAndHandover(t *testing.T) {
	t.Parallel()
	var moved *core.Hold
	for name, end := range map[string]func(t *testing.T, ctx context.Context, h *core.Hold){
		"release": func(t *testing.T, ctx context.Context, h *core.Hold) {
			t.Helper()
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
		},
		"handover": func(_ *testing.T, _ context.Context, h *core.Hold) { _, moved = h.Handover() },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			obs := &record{}
			p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), pay())
			out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, g aspect.Grant) error {
				end(t, ctx, g.Hold)
				return nil
			}})
			want(t, name, out, aspect.Outcome{Verdict: aspect.VerdictRan})
			want(t, name+": release failures", len(obs.releases), 0)
			if name == "release" {
				b.wantFree(t, "order:42")
				return
			}
			b.wantHeld(t, "order:42")
			if err := moved.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRun_NestedRulesOnOneKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		inner := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			for field, count := range b.holders(t, "order:42") {
				want(t, "count of "+field, count, "2")
			}
			return nil
		}}
		outer := &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			out := p.Run(ctx, inner)
			want(t, "inner verdict", out.Verdict, aspect.VerdictRan)
			b.wantHeld(t, "order:42")
			return out.Err
		}}
		want(t, "outer verdict", p.Run(t.Context(), outer).Verdict, aspect.VerdictRan)
		want(t, "inner ran", inner.handled, 1)
		b.wantFree(t, "order:42")
	})
}

func TestRun_SeveralRulesInOrder(t *testing.T) {
	t.Parallel()
	ends := &endings{}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, core.WithObserver(ends.observer()))
		p := mustCompile(t, mustAspect(t, b.locks),
			ruleset.Rule{Name: "a", Key: "a"}, ruleset.Rule{Name: "b", Key: "b"}, ruleset.Rule{Name: "c", Key: "c"})
		c := &call{handle: func(ctx context.Context, g aspect.Grant) error {
			b.wantHeld(t, "a", "b", "c")
			want(t, "hold of the grant", g.Hold.Key(), "c")
			for _, name := range []string{"a", "b", "c"} {
				core.MustHold(ctx, name)
			}
			return nil
		}}
		want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		b.wantFree(t, "a", "b", "c")
	})
	if got := ends.keys; !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("freed in order %v, want c, b, a", got)
	}
}

// endings records the order in which holds end.
type endings struct{ keys []string }

func (e *endings) observer() *core.Observer { return &core.Observer{HoldEnd: e.observeHoldEnd} }

func (e *endings) observeHoldEnd(_ context.Context, r core.HoldResult) {
	e.keys = append(e.keys, r.Key)
}

func TestRun_RefusalFreesTheRulesBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		second := ruleset.Rule{Name: "b", Key: "b", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "queue"}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), ruleset.Rule{Name: "a", Key: "a"}, second, ruleset.Rule{Name: "c", Key: "c"})
		b.redis.Take("b", time.Hour)
		c := &call{fallback: func(context.Context) error { b.wantFree(t, "a", "c"); return nil }}
		out := p.Run(t.Context(), c)
		want(t, "verdict", out.Verdict, aspect.VerdictFallback)
		want(t, "index", out.Index, 1)
		want(t, "handled", c.handled, 0)
		want(t, "decisions", len(obs.decisions), 2)
		b.wantFree(t, "a", "c")
	})
}

func TestRun_ProceedKeepsTheOtherLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), ruleset.Rule{Name: "a", Key: "a"},
			ruleset.Rule{Name: "b", Key: "b", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed}, ruleset.Rule{Name: "c", Key: "c"})
		b.redis.Take("b", time.Hour)
		c := &call{handle: func(_ context.Context, g aspect.Grant) error {
			b.wantHeld(t, "a", "c")
			want(t, "unlocked", g.Unlocked, aspect.UnlockedProceed)
			return nil
		}}
		out := p.Run(t.Context(), c)
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		want(t, "cause", out.Cause, failpolicy.Busy)
		want(t, "handled", c.handled, 1)
	})
}

func TestRun_FallbackPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), ruleset.Rule{Name: "a", Key: "a"},
			ruleset.Rule{Name: "b", Key: "b", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "queue"})
		b.redis.Take("b", time.Hour)
		defer func() {
			want(t, "recovered", recover(), any("boom"))
			b.wantFree(t, "a")
		}()
		p.Run(t.Context(), &call{fallback: func(context.Context) error { panic("boom") }})
	})
}

func TestRun_SeveralKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		list := ruleset.Rule{Name: "stock", Key: "stock:#{in.Items}", WaitTime: time.Second}
		both := ruleset.Rule{Name: "both", Keys: []string{"order:#{in.ID}", "stock:#{in.Items}"}, WaitTime: time.Second}
		a := mustAspect(t, b.locks)
		in := order{ID: "42", Items: []string{"pear", "apple", "pear"}}
		for _, rule := range []ruleset.Rule{list, both} {
			p := mustCompile(t, a, rule)
			c := &call{in: in, handle: func(context.Context, aspect.Grant) error {
				b.wantHeld(t, "stock:apple", "stock:pear")
				return nil
			}}
			want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
			b.wantFree(t, "order:42", "stock:apple", "stock:pear")

			b.redis.Take("stock:pear", time.Hour)
			out := p.Run(t.Context(), c)
			want(t, "cause", out.Cause, failpolicy.Busy)
			want(t, "handled", c.handled, 1)
			b.wantFree(t, "order:42", "stock:apple")
			b.redis.Expire("stock:pear")

			out = p.Run(t.Context(), &call{in: order{ID: "42"}})
			want(t, "cause of an empty list", out.Cause, failpolicy.Key)
		}
	})
}

func TestRun_PrefixAndConstantKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, core.WithPrefix("app:"))
		a := mustAspect(t, b.locks)
		c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			b.wantHeld(t, "app:shop:order:42", "app:shop:close-day")
			return nil
		}}
		keyed, constant := pay(), ruleset.Rule{Name: "close", Key: "close-day", Prefix: "shop:"}
		keyed.Prefix = "shop:"
		want(t, "verdict", mustCompile(t, a, keyed, constant).Run(t.Context(), c).Verdict, aspect.VerdictRan)
		want(t, "handled", c.handled, 1)
	})
}
