package aspect_test

import (
	"context"
	"errors"
	"maps"
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

func TestWrap_HoldsTheLock(t *testing.T) {
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

// The key of a time is its instant, whatever the zone of the caller or of the server is. A value of a named
// type in an interface has the text of its type.
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
					return fn(t.Context(), tc.second) // its context does not carry the hold, so it waits like any other caller
				})
				_, err := fn(t.Context(), tc.first)
				if refused, ok := errors.AsType[*aspect.RefusedError](err); !ok || refused.Cause != failpolicy.Busy || runs != 1 {
					t.Errorf("got %v, %v after %d runs, want a refusal of the second call", refused, err, runs)
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

// The outcome distinguishes a call that was skipped from a function that found nothing to do. Both return the zero value and
// nil.
func TestWithOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		rule := pay()
		rule.OnBusy, rule.WaitTime = failpolicy.Skip, ruleset.NoWait
		inner := mustWrap(t, a, ruleset.Rule{Name: "inner", Key: "taken", OnBusy: failpolicy.NullResponse, WaitTime: ruleset.NoWait},
			func(context.Context, order) (*receipt, error) { t.Error("inner ran"); return nil, nil })
		b.redis.Take("taken", time.Hour)
		nothing := mustWrap(t, a, rule, func(ctx context.Context, o order) (*receipt, error) { return inner(ctx, o) })
		for _, test := range []struct {
			taken   bool
			verdict aspect.Verdict
			cause   failpolicy.Cause
			mark    string
		}{
			{false, aspect.VerdictRan, "", ""},
			{true, aspect.VerdictAnswered, failpolicy.Busy, failpolicy.MarkSkipped},
		} {
			if test.taken {
				b.redis.Take("order:42", time.Hour)
			}
			var o aspect.Outcome
			got, err := nothing(aspect.WithOutcome(t.Context(), &o), order{ID: "42"})
			if got != nil || err != nil || o.Verdict != test.verdict || o.Cause != test.cause || o.Reply.Mark != test.mark {
				t.Errorf("got %v, %v, %+v; want %s", got, err, o, test.verdict)
			}
		}
	})
}

func TestWrap_Label(t *testing.T) {
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

func TestWrap_Mistakes(t *testing.T) {
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

var closeDay = ruleset.Func("close-day")

func TestWrap_MissingKeyInTheError(t *testing.T) {
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

func TestWrap_FallbackAndKeyInOneError(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t), aspect.WithFallback("queue", func(context.Context, string) (int, error) { return 0, nil }))
	_, err := aspect.Wrap(a, ruleset.Rule{Key: "a:#{in.Foo}", OnBusy: failpolicy.Fallback, Fallback: "queue"}, charge)
	if err == nil || !strings.Contains(err.Error(), "func(context.Context, string) (int, error)") || !strings.Contains(err.Error(), "no field Foo") {
		t.Errorf("got %v", err)
	}
}

func TestWrap_EndpointNotAFunction(t *testing.T) {
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

func TestWrap_Set(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seen := &record{}
	p := &mutableProvider{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.ID}"})}
	a := mustAspect(t, b.observe(t, seen.observer()), aspect.WithSet(p))
	held := func(ctx context.Context, _ order) (string, error) {
		names, err := b.rdb.Keys(ctx, "*").Result()
		slices.Sort(names)
		return strings.Join(names, " "), err
	}
	fn := mustWrap(t, a, ruleset.Rule{Endpoint: payFunc}, held)
	run := func(want string) {
		t.Helper()
		if got, err := fn(t.Context(), order{ID: "42"}); err != nil || got != want {
			t.Errorf("held %q, %v, want %q", got, err, want)
		}
	}
	run("order:42")

	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed"})); err == nil {
		t.Error("a rule with another lock came into force")
	}
	both := []string{"order:#{in.ID}", "new:#{in.ID}"}
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Keys: both, Name: "renamed"})); err != nil {
		t.Fatal(err)
	}
	run("new:42 order:42")
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed"})); err != nil {
		t.Fatal(err)
	}
	run("new:42")
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed", Disabled: true})); err != nil {
		t.Fatal(err)
	}
	run("")

	for _, bad := range []*ruleset.Set{
		file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.Id}"}), file(t),
		file(t, ruleset.Rule{Endpoint: payFunc, Key: "k", OnBusy: failpolicy.Fallback, Fallback: "missing"}),
	} {
		if err := p.replace(bad); err == nil {
			t.Errorf("a set with %d rules was accepted", len(bad.Rules()))
		}
	}
	run("")
	notified := map[string]int{}
	for _, r := range seen.rules {
		notified[r.Rule+map[bool]string{true: " gone"}[r.Retracted]]++
	}
	if want := map[string]int{"pay": 1, "pay gone": 1, "renamed": 3}; !maps.Equal(notified, want) {
		t.Errorf("observers were notified of %v, want %v", notified, want)
	}
}

func TestWrap_SetOverGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	code := ruleset.Rule{Endpoint: payFunc, Name: "charge", Key: "order:#{in.ID}", WaitTime: time.Second}
	wait := func(overlay ...ruleset.Rule) error {
		a := mustAspect(t, b.locks, aspect.WithSet(file(t, overlay...)))
		_, err := aspect.Wrap(a, code, charge)
		return err
	}
	if err := wait(ruleset.Rule{Endpoint: payFunc, Name: "charge", WaitTime: 2 * time.Second}); err != nil {
		t.Error(err)
	}
	if err := wait(); err != nil {
		t.Error(err)
	}
	err := wait(ruleset.Rule{Endpoint: payFunc, Name: "chrage", WaitTime: 2 * time.Second})
	if err == nil || !strings.Contains(err.Error(), `locks.yaml:1:1: rule "chrage" of func pay: key: missing`) || !strings.Contains(err.Error(), `"charge"`) {
		t.Errorf("got %v", err)
	}
}

// If a function has no rule, the message names the file and the function that may be meant.
func TestWrap_NoRuleInTheSet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const add = "add one for func: close-day; disabled: true lets it run unlocked"
	for text, want := range map[string]string{
		"rules:\n- {func: close-dya, key: k}\n": `locks.yaml: rule of func close-day: neither the program nor the set has a rule: did you mean "close-dya"? Otherwise ` + add,
		"rules:\n- {func: refund, key: k}\n":    "locks.yaml: rule of func close-day: neither the program nor the set has a rule: " + add,
		"rules: []\n":                           "locks.yaml: rule of func close-day: neither the program nor the set has a rule: " + add,
	} {
		set, err := ruleset.Load("locks.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a := mustAspect(t, b.locks, aspect.WithSet(set))
		_, err = aspect.Wrap(a, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, charge)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWrap_RuleRemovedByAReload(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, bare := range []ruleset.Rule{{Name: "pay"}, {Endpoint: payFunc}} {
		p := &mutableProvider{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
		mustWrap(t, mustAspect(t, b.locks, aspect.WithSet(p)), bare, charge)
		err := p.replace(file(t, ruleset.Rule{Endpoint: ruleset.Func("pya"), Key: "a"}))
		if err == nil || !strings.Contains(err.Error(), "neither the program nor the set has a rule") {
			t.Errorf("got %v", err)
		}
	}
}

// If a function is wrapped while a reload is prepared and the new rules do not fit the function, it refuses
// its calls.
func TestWrap_DuringAReload(t *testing.T) {
	t.Parallel()
	p := &hookedProvider{mutableProvider: mutableProvider{set: file(t)}}
	a := mustAspect(t, newBench(t).locks, aspect.WithSet(p))
	var fn func(context.Context, order) (string, error)
	p.preparing = func() {
		fn = mustWrap(t, a, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.ID}"}, func(context.Context, order) (string, error) {
			t.Error("the function runs")
			return "", nil
		})
	}
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.Nothing}"})); err != nil {
		t.Fatal(err)
	}
	_, err := fn(t.Context(), order{ID: "42"})
	if refused, ok := errors.AsType[*aspect.RefusedError](err); !ok || refused.Message == "" {
		t.Errorf("got %v", err)
	}
}

// A function whose rule does not compile never enters a table, so it does not make reloads fail.
func TestWrap_FailureDuringReloads(t *testing.T) {
	t.Parallel()
	p := &mutableProvider{set: file(t)}
	a := mustAspect(t, offline(t), aspect.WithSet(p))
	stop := make(chan struct{})
	var wraps sync.WaitGroup
	for range 3 {
		wraps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				nothing := func(context.Context, string) (int, error) { return 0, nil }
				if _, err := aspect.Wrap(a, ruleset.Rule{Name: "bad", Key: "x:#{in.Nope}"}, nothing); err == nil {
					t.Error("the rule reads a field that does not exist")
				}
			}
		})
	}
	for range 300 {
		if err := p.replace(file(t)); err != nil {
			t.Errorf("a good set is refused: %v", err)
			break
		}
	}
	close(stop)
	wraps.Wait()
}
