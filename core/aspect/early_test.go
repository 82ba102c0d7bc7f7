package aspect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// slow is a call with a variable that comes late, and something to do before it waits.
type slow struct {
	*call
	values   keyexpr.Values // early, late
	asked    int            // for late
	ready    bool           // nothing is to be done before it waits
	prepared int
	refuses  error
}

func newSlow(early any) *slow {
	s := &slow{call: &call{}, values: keyexpr.Values{early, "42"}}
	s.env = s
	return s
}

func (s *slow) Value(slot int) (any, error) {
	if slot == 1 {
		s.asked++
	}
	return s.values.Value(slot)
}

func (s *slow) Items(int, string) ([]string, error) { return nil, nil }

func (s *slow) BeforeWait() func(context.Context) error {
	if s.ready {
		return nil
	}
	return func(context.Context) error {
		s.prepared++
		return s.refuses
	}
}

func slowPoint(t *testing.T, locks *core.Client, rules ...ruleset.Rule) *aspect.Point {
	t.Helper()
	schema, err := keyexpr.NewSchema(
		keyexpr.Variable{Name: "early", Type: keyexpr.TypeFor[string]()}, keyexpr.Variable{Name: "late", Type: keyexpr.TypeFor[string]()},
	)
	if err != nil {
		t.Fatal(err)
	}
	p, err := mustAspect(t, locks).Compile(aspect.Site{Endpoint: ruleset.Func("pay"), Schema: schema, Late: []string{"late"}}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRun_WhatIsKnownWithoutLateVariablesIsDecidedFirst(t *testing.T) {
	t.Parallel()
	const key = "order:#{late}:#{early}"
	tests := map[string]struct {
		rule  ruleset.Rule
		early any
		cause failpolicy.Cause
		asked int
	}{
		"all is there":        {ruleset.Rule{Key: key}, "1", "", 1},
		"a part is missing":   {ruleset.Rule{Key: key}, nil, failpolicy.Key, 0},
		"a key of several":    {ruleset.Rule{Keys: []string{"a:#{late}", "b:#{early}"}}, nil, failpolicy.Key, 0},
		"a dry run":           {ruleset.Rule{Key: key, DryRun: true}, nil, "", 0},
		"a false condition":   {ruleset.Rule{Key: key, When: `early == "2"`}, "1", "", 0},
		"a condition over it": {ruleset.Rule{Key: key, When: `late == "42"`}, nil, failpolicy.Key, 1},
		"a key without it":    {ruleset.Rule{Key: "order:#{early}"}, "1", "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tt.rule.Name = "pay"
				c := newSlow(tt.early)
				out := slowPoint(t, b.locks, tt.rule).Run(t.Context(), c)
				want(t, "cause", out.Cause, tt.cause)
				want(t, "asked", c.asked, tt.asked)
			})
		})
	}
}

func TestRun_LockThatWouldBeRefusedIsRefusedBeforeLateVariables(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]ruleset.Rule{
		"one":       {Key: "order:#{late}"},
		"several":   {Keys: []string{"a:#{late}", "b:#{late}"}},
		"no wait":   {Key: "order:#{late}", WaitTime: ruleset.NoWait},
		"debounced": {Key: "order:#{late}", Debounce: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			rule.Name = "pay"
			p := slowPoint(t, b.locks, rule)
			b.redis.Down()
			_, _, err := b.locks.Lock("x").Acquire(t.Context())
			wantErr(t, name+": another lock", err, core.ErrUnavailable)
			time.Sleep(time.Second) // it gives up a little before the silence is as long as the backend timeout
			c := newSlow("1")
			out := p.Run(t.Context(), c)
			want(t, name+": cause", out.Cause, failpolicy.Backend)
			wantErr(t, name+": reason", out.Reason, core.ErrUnavailable)
			want(t, name+": asked", c.asked, 0)
			want(t, name+": prepared", c.prepared, 0)
		})
	}
}

func TestRun_PreparesOnceBeforeItWaits(t *testing.T) {
	t.Parallel()
	plain := func(rule ruleset.Rule) ruleset.Rule {
		rule.Name, rule.Key = "pay", "order:42"
		return rule
	}
	second := ruleset.Rule{Name: "second", Key: "second"}
	tests := map[string]struct {
		rules    []ruleset.Rule
		taken    []string
		ready    bool
		prepared int
	}{
		"a free lock":             {[]ruleset.Rule{plain(ruleset.Rule{}), second}, nil, false, 0},
		"a rule that waits":       {[]ruleset.Rule{plain(ruleset.Rule{})}, []string{"order:42"}, false, 1},
		"two that wait":           {[]ruleset.Rule{plain(ruleset.Rule{}), second}, []string{"order:42", "second"}, false, 1},
		"nothing to do":           {[]ruleset.Rule{plain(ruleset.Rule{})}, []string{"order:42"}, true, 0},
		"one that does not wait":  {[]ruleset.Rule{plain(ruleset.Rule{WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed})}, []string{"order:42"}, false, 0},
		"the second of them does": {[]ruleset.Rule{plain(ruleset.Rule{WaitTime: ruleset.NoWait}), second}, []string{"second"}, false, 1},
		"disabled":                {[]ruleset.Rule{plain(ruleset.Rule{Disabled: true})}, []string{"order:42"}, false, 0},
		"a dry run":               {[]ruleset.Rule{plain(ruleset.Rule{DryRun: true})}, []string{"order:42"}, false, 0},
		"several keys":            {[]ruleset.Rule{{Name: "pay", Keys: []string{"order:42", "second"}}}, []string{"second"}, false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				c := newSlow("1")
				c.ready = tt.ready
				c.handle = func(context.Context, aspect.Grant) error {
					want(t, "prepared before the handler", c.prepared, tt.prepared)
					return nil
				}
				for _, key := range tt.taken {
					b.redis.Take(key, time.Hour)
					time.AfterFunc(time.Second, func() { b.redis.Free(key) })
				}
				want(t, "verdict", slowPoint(t, b.locks, tt.rules...).Run(t.Context(), c).Verdict, aspect.VerdictRan)
				want(t, "prepared", c.prepared, tt.prepared)
			})
		})
	}
}

// A queue that is full already is not prepared for; its own waiters are.
func TestRun_DoesNotPrepareForAFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := slowPoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42", MaxWaiters: 1})
		b.redis.Take("order:42", time.Hour)
		first, second := newSlow("1"), newSlow("1")
		go p.Run(t.Context(), first)
		synctest.Wait()
		want(t, "cause", p.Run(t.Context(), second).Cause, failpolicy.Overload)
		want(t, "prepared for the first", first.prepared, 1)
		want(t, "prepared for the second", second.prepared, 0)
		b.redis.Free("order:42")
		synctest.Wait()
		want(t, "the first ran", first.handled, 1)
	})
}

// What a call says that it has no room for is an overload, whatever the rule says of busy.
func TestRun_AnOverloadOfTheCallItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := slowPoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42", OnBusy: failpolicy.Proceed, OnOverload: failpolicy.Skip})
		b.redis.Take("order:42", time.Hour)
		c := newSlow("1")
		c.refuses = core.ErrTooManyWaiters
		out := p.Run(t.Context(), c)
		want(t, "cause", out.Cause, failpolicy.Overload)
		want(t, "verdict", out.Verdict, aspect.VerdictAnswered)
	})
}

// leaving is a call that is answered elsewhere when it has the lock of a rule.
type leaving struct {
	*call
	left int // calls of Abandoned until it is
}

func (l *leaving) Abandoned() bool {
	l.left--
	return l.left < 0
}

// A call that was answered elsewhere while it waited has neither its handler run nor a later rule
// applied, and its locks are free.
func TestRun_AbandonedCall(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]ruleset.Rule{
		"with its lock": {Name: "second", Key: "second"},
		"unlocked":      {Name: "second", Key: "taken", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed},
	} {
		for after := range 2 {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.redis.Take("taken", time.Hour)
				c := &leaving{&call{}, after}
				out := slowPoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42"}, rule).Run(t.Context(), c)
				want(t, name+": cause", out.Cause, failpolicy.Canceled)
				want(t, name+": verdict", out.Verdict, aspect.VerdictRefused)
				want(t, name+": the rule", out.Index, after)
				want(t, name+": handled", c.handled, 0)
				want(t, name+": holds", b.locks.Stats().Holds, 0)
			})
		}
	}
}
