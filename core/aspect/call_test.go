package aspect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// lateCall is a call with a variable that is available late and with work before a wait.
type lateCall struct {
	*call
	values   keyexpr.Values // early, late
	asked    int            // how often an expression read late
	ready    bool           // BeforeWait returns nil
	prepared int
	refuses  error
}

func newLateCall(early any) *lateCall {
	s := &lateCall{call: &call{}, values: keyexpr.Values{early, "42"}}
	s.env = s
	return s
}

func (s *lateCall) Value(slot int) (any, error) {
	if slot == 1 {
		s.asked++
	}
	return s.values.Value(slot)
}

func (s *lateCall) Items(int, string) ([]string, error) { return nil, nil }

func (s *lateCall) BeforeWait() func(context.Context) error {
	if s.ready {
		return nil
	}
	return func(context.Context) error {
		s.prepared++
		return s.refuses
	}
}

func latePoint(t *testing.T, locks *core.Client, rules ...ruleset.Rule) *aspect.Point {
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

func TestCall_LateVariablesAreAskedForLast(t *testing.T) {
	t.Parallel()
	const key = "order:#{late}:#{early}"
	tests := map[string]struct {
		rule  ruleset.Rule
		early any
		cause failpolicy.Cause
		asked int
	}{
		"nothing missing":            {ruleset.Rule{Key: key}, "1", "", 1},
		"part missing":               {ruleset.Rule{Key: key}, nil, failpolicy.Key, 0},
		"one key of several missing": {ruleset.Rule{Keys: []string{"a:#{late}", "b:#{early}"}}, nil, failpolicy.Key, 0},
		"a dry run":                  {ruleset.Rule{Key: key, DryRun: true}, nil, "", 0},
		"a false condition":          {ruleset.Rule{Key: key, When: `early == "2"`}, "1", "", 0},
		"condition reads it":         {ruleset.Rule{Key: key, When: `late == "42"`}, nil, failpolicy.Key, 1},
		"key does not read it":       {ruleset.Rule{Key: "order:#{early}"}, "1", "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tt.rule.Name = "pay"
				c := newLateCall(tt.early)
				out := latePoint(t, b.locks, tt.rule).Run(t.Context(), c)
				want(t, "cause", out.Cause, tt.cause)
				want(t, "asked", c.asked, tt.asked)
			})
		})
	}
}

func TestCall_RefusedBeforeLateVariables(t *testing.T) {
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
			p := latePoint(t, b.locks, rule)
			b.redis.Down()
			_, _, err := b.locks.Lock("x").Acquire(t.Context())
			wantErr(t, name+": another lock", err, core.ErrUnavailable)
			time.Sleep(time.Second) // Acquire gives up a little before the backend timeout, when Redis does not count as silent yet
			c := newLateCall("1")
			out := p.Run(t.Context(), c)
			want(t, name+": cause", out.Cause, failpolicy.Backend)
			wantErr(t, name+": reason", out.Reason, core.ErrUnavailable)
			want(t, name+": asked", c.asked, 0)
			want(t, name+": prepared", c.prepared, 0)
		})
	}
}

func TestCall_BeforeWait(t *testing.T) {
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
		"free lock":          {[]ruleset.Rule{plain(ruleset.Rule{}), second}, nil, false, 0},
		"rule waits":         {[]ruleset.Rule{plain(ruleset.Rule{})}, []string{"order:42"}, false, 1},
		"two rules wait":     {[]ruleset.Rule{plain(ruleset.Rule{}), second}, []string{"order:42", "second"}, false, 1},
		"nothing to do":      {[]ruleset.Rule{plain(ruleset.Rule{})}, []string{"order:42"}, true, 0},
		"rule does not wait": {[]ruleset.Rule{plain(ruleset.Rule{WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed})}, []string{"order:42"}, false, 0},
		"second rule waits":  {[]ruleset.Rule{plain(ruleset.Rule{WaitTime: ruleset.NoWait}), second}, []string{"second"}, false, 1},
		"disabled":           {[]ruleset.Rule{plain(ruleset.Rule{Disabled: true})}, []string{"order:42"}, false, 0},
		"a dry run":          {[]ruleset.Rule{plain(ruleset.Rule{DryRun: true})}, []string{"order:42"}, false, 0},
		"several keys":       {[]ruleset.Rule{{Name: "pay", Keys: []string{"order:42", "second"}}}, []string{"second"}, false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				c := newLateCall("1")
				c.ready = tt.ready
				c.handle = func(context.Context, aspect.Grant) error {
					want(t, "prepared before the handler", c.prepared, tt.prepared)
					return nil
				}
				for _, key := range tt.taken {
					b.redis.Take(key, time.Hour)
					time.AfterFunc(time.Second, func() { b.redis.Free(key) })
				}
				want(t, "verdict", latePoint(t, b.locks, tt.rules...).Run(t.Context(), c).Verdict, aspect.VerdictRan)
				want(t, "prepared", c.prepared, tt.prepared)
			})
		})
	}
}

// A call that finds a full queue does no work before a wait. The waiters in the queue have done it.
func TestCall_BeforeWaitAndAFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := latePoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42", MaxWaiters: 1})
		b.redis.Take("order:42", time.Hour)
		first, second := newLateCall("1"), newLateCall("1")
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

// ErrTooManyWaiters from the work before a wait is an overload, whatever the rule's strategy for busy is.
func TestCall_BeforeWaitReportsAnOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := latePoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42", OnBusy: failpolicy.Proceed, OnOverload: failpolicy.Skip})
		b.redis.Take("order:42", time.Hour)
		c := newLateCall("1")
		c.refuses = core.ErrTooManyWaiters
		out := p.Run(t.Context(), c)
		want(t, "cause", out.Cause, failpolicy.Overload)
		want(t, "verdict", out.Verdict, aspect.VerdictAnswered)
	})
}

// endingCall is a call that may end its own wait.
type endingCall struct {
	*call
	may bool
	end func(reason error)
}

func (e *endingCall) EndWait(end func(reason error)) bool {
	e.end = end
	return e.may
}

// A call that ends its wait did not acquire the lock. Its caller has not left, so that every strategy applies.
func TestCall_EndWait(t *testing.T) {
	t.Parallel()
	reason := errors.New("too large")
	tests := map[string]struct {
		rule    ruleset.Rule
		may     bool
		reason  error
		cause   failpolicy.Cause
		verdict aspect.Verdict
		after   time.Duration
	}{
		"as busy":               {ruleset.Rule{WaitTime: time.Minute}, true, reason, failpolicy.Busy, aspect.VerdictRefused, time.Second},
		"as an overload":        {ruleset.Rule{WaitTime: time.Minute}, true, core.ErrTooManyWaiters, failpolicy.Overload, aspect.VerdictRefused, time.Second},
		"and a fallback":        {ruleset.Rule{WaitTime: ruleset.WaitForever, OnBusy: failpolicy.Fallback, Fallback: "queue"}, true, reason, failpolicy.Busy, aspect.VerdictFallback, time.Second},
		"and proceeds":          {ruleset.Rule{WaitTime: ruleset.WaitForever, OnBusy: failpolicy.Proceed}, true, reason, failpolicy.Busy, aspect.VerdictRan, time.Second},
		"for another call":      {ruleset.Rule{WaitTime: time.Minute}, false, reason, "", aspect.VerdictRan, time.Hour},
		"after the lock is won": {ruleset.Rule{WaitTime: 2 * time.Hour}, true, reason, "", aspect.VerdictRan, 2 * time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tt.rule.Name, tt.rule.Key = "pay", "order:42"
				b.redis.Take("order:42", time.Hour)
				c := &endingCall{call: &call{}, may: tt.may}
				alive := func(ctx context.Context) error {
					c.end(reason) // does nothing anymore
					return ctx.Err()
				}
				c.handle, c.fallback = func(ctx context.Context, _ aspect.Grant) error { return alive(ctx) }, alive
				if tt.may {
					time.AfterFunc(tt.after, func() { c.end(tt.reason) })
				}
				if !tt.may || tt.after > time.Hour {
					time.AfterFunc(time.Second, func() { b.redis.Free("order:42") })
				}
				start := time.Now()
				out := endingPoint(t, b.locks, tt.rule).Run(t.Context(), c)
				want(t, "cause", out.Cause, tt.cause)
				want(t, "verdict", out.Verdict, tt.verdict)
				wantErr(t, "error of the handler", out.Err, nil)
				want(t, "waited", time.Since(start).Round(time.Second), time.Second)
				if tt.cause != "" {
					wantErr(t, "reason", out.Reason, tt.reason)
					wantErr(t, "reason", out.Reason, core.ErrNotAcquired)
				}
			})
		})
	}
}

func endingPoint(t *testing.T, locks *core.Client, rule ruleset.Rule) *aspect.Point {
	t.Helper()
	schema, err := keyexpr.NewSchema()
	if err != nil {
		t.Fatal(err)
	}
	p, err := mustAspect(t, locks).Compile(aspect.Site{Endpoint: ruleset.Func("pay"), Schema: schema, Fallbacks: []string{"queue"}}, rule)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// abandonedCall is a call that another layer answers while the guard handles its rules.
type abandonedCall struct {
	*call
	left int // the number of calls for which Abandoned still returns false
}

func (l *abandonedCall) Abandoned() bool {
	l.left--
	return l.left < 0
}

// If another layer has answered a call, neither its handler nor a later rule sees the call, and its locks are free.
func TestCall_Abandoned(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]ruleset.Rule{
		"with its lock": {Name: "second", Key: "second"},
		"unlocked":      {Name: "second", Key: "taken", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed},
	} {
		for after := range 2 {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.redis.Take("taken", time.Hour)
				c := &abandonedCall{&call{}, after}
				out := latePoint(t, b.locks, ruleset.Rule{Name: "pay", Key: "order:42"}, rule).Run(t.Context(), c)
				want(t, name+": cause", out.Cause, failpolicy.Canceled)
				want(t, name+": verdict", out.Verdict, aspect.VerdictRefused)
				want(t, name+": the rule", out.Index, after)
				want(t, name+": handled", c.handled, 0)
				want(t, name+": holds", b.locks.Stats().Holds, 0)
			})
		}
	}
}

func TestCall_DeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		deadline, wait, waited time.Duration
	}{
		{10 * time.Second, ruleset.WaitForever, 9 * time.Second},
		{10 * time.Second, time.Minute, 9 * time.Second},
		{10 * time.Second, 2 * time.Second, 2 * time.Second},
		{200 * time.Millisecond, time.Minute, 150 * time.Millisecond},
		{40 * time.Millisecond, time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			rule := pay()
			rule.WaitTime = tc.wait
			p := mustCompile(t, mustAspect(t, b.locks), rule)
			b.redis.Take("order:42", time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
			defer cancel()
			start := time.Now()
			out := p.Run(ctx, &call{in: order{ID: "42"}})
			want(t, "cause", out.Cause, failpolicy.Busy)
			want(t, "waited", time.Since(start), tc.waited)
		})
	}
}

func TestCall_AnswerBy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		caller, answer, wait, waited time.Duration
	}{
		"no other deadline":     {0, 10 * time.Second, ruleset.WaitForever, 9 * time.Second},
		"before the caller's":   {time.Minute, 10 * time.Second, time.Minute, 9 * time.Second},
		"after the caller's":    {10 * time.Second, time.Minute, time.Minute, 9 * time.Second},
		"none":                  {0, 0, 2 * time.Second, 2 * time.Second},
		"later than the wait":   {0, 10 * time.Second, 2 * time.Second, 2 * time.Second},
		"no time for a wait":    {0, 40 * time.Millisecond, time.Minute, 0},
		"past already":          {0, -time.Second, time.Minute, 0},
		"a rule without a wait": {0, 10 * time.Second, ruleset.NoWait, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			rule := pay()
			rule.WaitTime = tc.wait
			p := mustCompile(t, mustAspect(t, b.locks), rule)
			b.redis.Take("order:42", time.Hour)
			ctx, start := t.Context(), time.Now()
			if tc.caller != 0 {
				limited, cancel := context.WithTimeout(ctx, tc.caller)
				defer cancel()
				ctx = limited
			}
			c := timedCall{call: &call{in: order{ID: "42"}}}
			if tc.answer != 0 {
				c.by = start.Add(tc.answer)
			}
			want(t, name+": cause", p.Run(ctx, c).Cause, failpolicy.Busy)
			want(t, name+": waited", time.Since(start), tc.waited)
			b.redis.Free("order:42")
			c.handle = func(ctx context.Context, _ aspect.Grant) error {
				_, limited := ctx.Deadline()
				want(t, name+": the handler's context has a deadline", limited, false)
				return nil
			}
			want(t, name+": verdict of a free lock", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		})
	}
}

// timedCall is a call with a time by which it has to be answered.
type timedCall struct {
	*call
	by time.Time
}

func (c timedCall) AnswerBy() time.Time { return c.by }
