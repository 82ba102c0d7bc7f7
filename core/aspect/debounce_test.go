package aspect_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func submit() ruleset.Rule {
	return ruleset.Rule{Name: "submit", Key: "order:#{in.ID}", Debounce: 5 * time.Second}
}

func TestDebounce_RefusesWithoutWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), submit())
		c := &call{in: order{ID: "42"}}
		want(t, "first", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		b.wantHeld(t, "order:42")
		time.Sleep(1500 * time.Millisecond) // virtual time

		start := time.Now()
		out := p.Run(t.Context(), c)
		want(t, "second", out.Cause, failpolicy.Debounced)
		want(t, "status", out.Status, failpolicy.Debounced.Status())
		want(t, "waited", time.Since(start), 0)
		want(t, "retry", out.RetryAfter, 4*time.Second)
		want(t, "another order", p.Run(t.Context(), &call{in: order{ID: "43"}}).Verdict, aspect.VerdictRan)

		time.Sleep(3600 * time.Millisecond) // virtual time
		want(t, "after the window", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		want(t, "handled", c.handled, 2)
	})
}

func TestDebounce_FailureFreesTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), submit())
		for _, err := range []error{errHandler, aspect.ErrHandlerFailed} {
			c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error { return err }}
			want(t, "error", p.Run(t.Context(), c).Err, err)
			b.wantFree(t, "order:42")
		}
	})
}

func TestDebounce_HandlerLongerThanTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), submit())
		slow := &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			time.Sleep(2 * time.Minute) // virtual time
			return ctx.Err()
		}}
		var first sync.WaitGroup
		first.Go(func() {
			out := p.Run(t.Context(), slow)
			want(t, "first", out, aspect.Outcome{Verdict: aspect.VerdictRan})
		})
		synctest.Wait()
		time.Sleep(time.Minute) // virtual time
		out := p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "while it runs", out.Cause, failpolicy.Debounced)
		if out.RetryAfter > 5*time.Second {
			t.Errorf("retry after %s, want at most the window", out.RetryAfter)
		}
		first.Wait()
		b.wantHeld(t, "order:42")
		time.Sleep(5*time.Second + 100*time.Millisecond) // virtual time
		b.wantFree(t, "order:42")
	})
}

func TestDebounce_EarlyReleaseBeginsNoWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), submit())
		c := &call{in: order{ID: "42"}, handle: func(ctx context.Context, g aspect.Grant) error { return g.Hold.Release(ctx) }}
		want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		want(t, "release failures", len(obs.releases), 0)
		b.wantFree(t, "order:42")
	})
}

func TestDebounce_InsideAnOuterHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), submit())
		err := b.locks.Lock("order:42").Do(t.Context(), func(ctx context.Context) error {
			want(t, "verdict", p.Run(ctx, &call{in: order{ID: "42"}}).Verdict, aspect.VerdictRan)
			b.wantHeld(t, "order:42")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		want(t, "release failures", len(obs.releases), 0)
		b.wantFree(t, "order:42")
	})
}

func TestDebounce_AnsweredByOnBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := submit()
		rule.OnBusy = failpolicy.Skip
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		c := &call{in: order{ID: "42"}}
		p.Run(t.Context(), c)
		out := p.Run(t.Context(), c)
		want(t, "verdict", out.Verdict, aspect.VerdictAnswered)
		want(t, "cause", out.Cause, failpolicy.Debounced)
		want(t, "handled", c.handled, 1)
	})
}

func TestDebounce_MarkerLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, core.WithWatchdog(time.Hour))
		p := mustCompile(t, mustAspect(t, b.locks), submit())
		out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			b.redis.Take("order:42", time.Hour)
			return nil
		}})
		want(t, "lost", out.Lost, true)
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		b.wantHeld(t, "order:42")
	})
}

func TestDebounce_DryRunCountsTheSecondCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := submit()
		rule.DryRun = true
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
		c := &call{in: order{ID: "42"}}
		for _, cause := range []failpolicy.Cause{"", failpolicy.Debounced} {
			want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
			want(t, "cause", obs.last(t).Cause, cause)
		}
		want(t, "handled", c.handled, 2)
		b.wantFree(t, "order:42")
	})
}

// A handler cancels the debounce of every rule around it, through every context that leads to the run.
func TestCancelDebounce(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(ctx context.Context){
		"the context":            aspect.CancelDebounce,
		"derived context":        func(ctx context.Context) { aspect.CancelDebounce(context.WithoutCancel(ctx)) },
		"twice":                  func(ctx context.Context) { aspect.CancelDebounce(ctx); aspect.CancelDebounce(ctx) },
		"detached context":       func(ctx context.Context) { aspect.CancelDebounce(core.Detach(ctx)) },
		"context of a framework": func(ctx context.Context) { aspect.CancelDebounce(page{owner: ctx.Value(core.ContextKey)}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				a := mustAspect(t, b.locks)
				outer := mustCompile(t, a, submit())
				inner := mustCompile(t, a,
					ruleset.Rule{Name: "other", Key: "other:#{in.ID}", Debounce: time.Hour},
					ruleset.Rule{Name: "plain", Key: "plain:#{in.ID}"})
				c := &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
					out := inner.Run(ctx, &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
						cancel(ctx)
						return nil
					}})
					want(t, "inner verdict", out.Verdict, aspect.VerdictRan)
					b.wantFree(t, "other:42")
					return nil
				}}
				want(t, "outer verdict", outer.Run(t.Context(), c).Verdict, aspect.VerdictRan)
				b.wantFree(t, "order:42")
			})
		})
	}
	aspect.CancelDebounce(t.Context()) // outside a call, CancelDebounce does nothing
}

// page is the context type of a framework. It carries only the lock.
type page struct {
	context.Context
	owner any
}

func (p page) Value(key any) any {
	if key == core.ContextKey {
		return p.owner
	}
	return nil
}
