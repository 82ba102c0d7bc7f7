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

type receipt struct{ Total int }

func charge(_ context.Context, o order) (*receipt, error) {
	if o.VIP {
		return nil, errHandler
	}
	return &receipt{Total: len(o.Items)}, nil
}

func mustWrap[In, Out any](tb testing.TB, a *aspect.Aspect, rule ruleset.Rule, fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	tb.Helper()
	wrapped, err := aspect.Wrap(a, rule, fn)
	if err != nil {
		tb.Fatal(err)
	}
	return wrapped
}

func TestWrap_RunsTheFunctionUnderItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		fn := mustWrap(t, mustAspect(t, b.locks), pay(), func(ctx context.Context, o order) (*receipt, error) {
			core.MustHold(ctx, "order:"+o.ID)
			return charge(ctx, o)
		})
		got, err := fn(t.Context(), order{ID: "42", Items: []string{"a", "b"}})
		if err != nil || got.Total != 2 {
			t.Errorf("got %v, %v", got, err)
		}
		_, err = fn(t.Context(), order{ID: "42", VIP: true})
		want(t, "error", err, errHandler)
		b.wantFree(t, "order:42")
	})
}

// The key of a time is its instant: neither the zone of the caller nor the one of the server
// lets two calls run at once, and a named type in an interface has the text of the type.
func TestWrap_OneTextPerValue(t *testing.T) {
	t.Parallel()
	type status string
	type slot struct {
		At  time.Time
		Any any
	}
	eight := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	nine := eight.In(time.FixedZone("CET", 3600))
	for name, tc := range map[string]struct {
		key           string
		first, second slot
	}{
		"times in two zones":         {"slot:#{in.At}", slot{At: eight}, slot{At: nine}},
		"a time in an interface":     {"slot:#{in.Any}", slot{Any: eight}, slot{Any: &nine}},
		"a named text and its plain": {"slot:#{in.Any}", slot{Any: "OPEN"}, slot{Any: status("OPEN")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				var fn func(context.Context, slot) (int, error)
				fn = mustWrap(t, mustAspect(t, newBench(t).locks), ruleset.Rule{Name: "book", Key: tc.key, WaitTime: ruleset.NoWait}, func(_ context.Context, in slot) (int, error) {
					runs++
					if runs > 1 {
						return 0, nil
					}
					return fn(t.Context(), tc.second) // a stranger, because its context does not have the hold
				})
				_, err := fn(t.Context(), tc.first)
				if refused, ok := errors.AsType[*aspect.RefusedError](err); !ok || refused.Cause != failpolicy.Busy || runs != 1 {
					t.Errorf("got %v, %v after %d runs, want that the second is refused", refused, err, runs)
				}
			})
		})
	}
}

func TestWrap_Strategies(t *testing.T) {
	t.Parallel()
	for strategy, total := range map[failpolicy.Strategy]int{
		failpolicy.Error: 0, failpolicy.Skip: 0, failpolicy.NullResponse: 0, failpolicy.Fallback: 99, failpolicy.Proceed: 1,
	} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				a := mustAspect(t, b.locks, aspect.WithFallback("queue", func(ctx context.Context, o order) (*receipt, error) {
					out, _ := aspect.OutcomeFrom(ctx)
					want(t, "cause", out.Cause, failpolicy.Busy)
					want(t, "argument", o.ID, "42")
					return &receipt{Total: 99}, nil
				}))
				rule := pay()
				rule.WaitTime, rule.OnBusy = ruleset.NoWait, strategy
				if strategy == failpolicy.Fallback {
					rule.Fallback = "queue"
				}
				b.redis.Take("order:42", time.Hour)
				got, err := mustWrap(t, a, rule, charge)(t.Context(), order{ID: "42", Items: []string{"a"}})
				if total == 0 {
					want(t, "result", got, nil)
				} else if got == nil || got.Total != total {
					t.Errorf("got %v, want a total of %d", got, total)
				}
				var refused *aspect.RefusedError
				want(t, "refused", errors.As(err, &refused), strategy == failpolicy.Error)
				if strategy == failpolicy.Error {
					want(t, "cause", refused.Cause, failpolicy.Busy)
					wantErr(t, "reason", err, core.ErrNotAcquired)
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWrap_LabelIsTheNameThenTheEndpointThenTheFunction(t *testing.T) {
	t.Parallel()
	for wantName, rule := range map[string]ruleset.Rule{
		"pay":                {Key: "a", Name: "pay"},
		"charge-card":        {Key: "a", Endpoint: ruleset.Func("charge-card")},
		"aspect_test.charge": {Key: "a"},
	} {
		obs := &record{}
		mustWrap(t, mustAspect(t, offline(t, core.WithObserver(obs.observer()))), rule, charge)
		want(t, "label", obs.rules[0].Rule, wantName)
	}
}

func TestWrap_ArgumentsOfAnyType(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		held := func(ctx context.Context, key string) (bool, error) {
			_, ok := core.Held(ctx, key)
			return ok, nil
		}
		byText := mustWrap(t, a, ruleset.Rule{Name: "text", Key: "t:#{in}"}, func(ctx context.Context, _ string) (bool, error) { return held(ctx, "t:x") })
		byNumber := mustWrap(t, a, ruleset.Rule{Name: "number", Key: "n:#{in}"}, func(ctx context.Context, _ int64) (bool, error) { return held(ctx, "n:7") })
		byPointer := mustWrap(t, a, ruleset.Rule{Name: "pointer", Key: "p:#{in.ID}"}, func(ctx context.Context, _ *order) (bool, error) { return held(ctx, "p:42") })
		byNothing := mustWrap(t, a, ruleset.Rule{Name: "nothing", Key: "constant"}, func(ctx context.Context, _ struct{}) (bool, error) { return held(ctx, "constant") })

		check := func(name string, ok bool, err error) {
			if err != nil || !ok {
				t.Errorf("%s: got %v, %v", name, ok, err)
			}
		}
		ok, err := byText(t.Context(), "x")
		check("text", ok, err)
		ok, err = byNumber(t.Context(), 7)
		check("number", ok, err)
		ok, err = byPointer(t.Context(), &order{ID: "42"})
		check("pointer", ok, err)
		ok, err = byNothing(t.Context(), struct{}{})
		check("nothing", ok, err)
		_, err = byPointer(t.Context(), nil)
		var refused *aspect.RefusedError
		if !errors.As(err, &refused) || refused.Cause != failpolicy.Key {
			t.Errorf("nil argument: got %v", err)
		}
	})
}

func TestWrap_BadUseIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t), aspect.WithFallback("queue", func(context.Context, string) (int, error) { return 0, nil }))
	for name, tc := range map[string]struct {
		wrap func() error
		want string
	}{
		"nil function": {func() error {
			_, err := aspect.Wrap[order, int](a, pay(), nil)
			return err
		}, "nil"},
		"nil aspect": {func() error {
			_, err := aspect.Wrap(nil, pay(), charge)
			return err
		}, "nil"},
		"unknown field": {func() error {
			_, err := aspect.Wrap(a, ruleset.Rule{Key: "order:#{in.Id}"}, charge)
			return err
		}, "in.ID"},
		"unknown fallback": {func() error {
			_, err := aspect.Wrap(a, ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, Fallback: "quee"}, charge)
			return err
		}, `write "queue"`},
		"fallback of another type": {func() error {
			_, err := aspect.Wrap(a, ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, Fallback: "queue"}, charge)
			return err
		}, "func(context.Context, string) (int, error)"},
		"unusable argument": {func() error {
			_, err := aspect.Wrap(a, ruleset.Rule{Key: "a"}, func(context.Context, chan int) (int, error) { return 0, nil })
			return err
		}, "in"},
	} {
		err := tc.wrap()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want it to contain %q", name, err, tc.want)
		}
	}
}
