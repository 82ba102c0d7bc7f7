package aspect_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

var errStatusCanceled = errors.New("rpc error: code = Canceled")

func TestLoss_OfAFixedLease(t *testing.T) {
	t.Parallel()
	untilDone := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, tc := range []struct {
		name    string
		onLost  failpolicy.OnLost
		handle  func(ctx context.Context) error
		verdict aspect.Verdict
		err     error
	}{
		{"cancel, the handler gives up", failpolicy.Cancel, untilDone, aspect.VerdictLost, context.Canceled},
		{"cancel, it gives up with the cause", failpolicy.Cancel, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, aspect.VerdictLost, core.ErrLost},
		{"cancel, it gives up in its own words", failpolicy.Cancel, func(ctx context.Context) error { <-ctx.Done(); return errStatusCanceled }, aspect.VerdictLost, errStatusCanceled},
		{"cancel, its result is kept", failpolicy.Cancel, func(ctx context.Context) error { <-ctx.Done(); return nil }, aspect.VerdictRan, nil},
		{"cancel, its own error is kept", failpolicy.Cancel, func(ctx context.Context) error { <-ctx.Done(); return errHandler }, aspect.VerdictRan, errHandler},
		{"fail, it finishes", failpolicy.Fail, func(ctx context.Context) error { <-ctx.Done(); return nil }, aspect.VerdictLost, nil},
		{"fail, its error", failpolicy.Fail, func(ctx context.Context) error { <-ctx.Done(); return errHandler }, aspect.VerdictLost, errHandler},
		{"ignore, its own timeout", failpolicy.Ignore, func(context.Context) error { time.Sleep(time.Minute); return context.DeadlineExceeded }, aspect.VerdictRan, context.DeadlineExceeded}, // virtual time
		{"ignore, it gives up", failpolicy.Ignore, func(context.Context) error { time.Sleep(time.Minute); return core.ErrLost }, aspect.VerdictLost, core.ErrLost},                            // virtual time
		{"ignore, it runs on", failpolicy.Ignore, func(ctx context.Context) error { time.Sleep(time.Minute); return ctx.Err() }, aspect.VerdictRan, nil},                                      // virtual time
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				obs := &record{}
				rule := pay()
				rule.LeaseTime, rule.OnLost = 2*time.Second, tc.onLost
				p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
				c := &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error { return tc.handle(ctx) }}
				c.canceled = func(err error) bool { return errors.Is(err, errStatusCanceled) }
				out := p.Run(t.Context(), c)
				want(t, "verdict", out.Verdict, tc.verdict)
				want(t, "lost", out.Lost, true)
				if !errors.Is(out.Err, tc.err) {
					t.Errorf("error: got %v, want %v", out.Err, tc.err)
				}
				failed := tc.verdict == aspect.VerdictLost
				want(t, "failures", len(obs.failures), map[bool]int{true: 1}[failed])
				want(t, "decision", obs.last(t).Cause, failpolicy.Lost)
				if !failed {
					want(t, "refusal", out.Refusal(), nil)
					return
				}
				want(t, "status", out.Status, failpolicy.Lost.Status())
				want(t, "retry", out.RetryAfter, 0)
				refusal := out.Refusal()
				wantErr(t, "refusal", refusal, core.ErrLost)
				if tc.err != nil {
					wantErr(t, "refusal", refusal, tc.err)
				}
			})
		})
	}
}

func TestLoss_IgnoredKeepsTheOwnership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.OnLost = failpolicy.Ignore
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		ctx, cancel := context.WithCancel(t.Context())
		out := p.Run(ctx, &call{in: order{ID: "42"}, handle: func(ctx context.Context, g aspect.Grant) error {
			want(t, "held", core.MustHold(ctx, "order:42"), g.Hold)
			want(t, "error before", ctx.Err(), nil)
			cancel()
			child, stop := context.WithCancel(ctx)
			defer stop()
			<-child.Done()
			return ctx.Err()
		}})
		want(t, "error", out.Err, context.Canceled)
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
	})
}

func TestLoss_CallerCancels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.LeaseTime = time.Second
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		ctx, cancel := context.WithCancel(t.Context())
		out := p.Run(ctx, &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			cancel()
			time.Sleep(time.Minute) // past the lease, too
			return ctx.Err()
		}})
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		want(t, "error", out.Err, context.Canceled)
	})
}

func TestLoss_LeavesTheNewHolderAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.LeaseTime = 2 * time.Second
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		var stranger string
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			<-ctx.Done()
			time.Sleep(time.Second) // virtual time
			stranger = b.redis.Take("order:42", time.Hour)
			return nil
		}})
		if m := b.holders(t, "order:42"); m[stranger] != "1" || len(m) != 1 {
			t.Errorf("got %v, want only the new owner %s", m, stranger)
		}
	})
}

func TestLoss_OfOneRuleOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())),
			ruleset.Rule{Name: "short", Key: "a", LeaseTime: time.Second, OnLost: failpolicy.Cancel},
			ruleset.Rule{Name: "long", Key: "b", OnLost: failpolicy.Fail})
		out := p.Run(t.Context(), &call{handle: func(ctx context.Context, _ aspect.Grant) error {
			<-ctx.Done()
			return nil
		}})
		want(t, "verdict", out.Verdict, aspect.VerdictRan)
		want(t, "lost", out.Lost, true)
		want(t, "cause of short", obs.decisions[0].Cause, failpolicy.Lost)
		want(t, "cause of long", obs.decisions[1].Cause, "")
		b.wantFree(t, "b")
	})
}

func TestLoss_OfTheOuterCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		outer := pay()
		outer.LeaseTime = time.Second
		inner := mustCompile(t, a, ruleset.Rule{Name: "inner", Key: "inner", OnBusy: failpolicy.Proceed})
		b.redis.Take("inner", time.Hour)
		var refused aspect.Outcome
		out := mustCompile(t, a, outer).Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			refused = inner.Run(ctx, &call{})
			return refused.Refusal()
		}})
		want(t, "inner cause", refused.Cause, failpolicy.Lost)
		want(t, "inner verdict", refused.Verdict, aspect.VerdictRefused)
		want(t, "outer verdict", out.Verdict, aspect.VerdictLost)
	})
}

// After a shutdown, an inner call is refused because its outer lock was lost, not because the caller has left.
func TestLoss_ByCloseOfTheOuterCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		inner := mustCompile(t, a, ruleset.Rule{Name: "inner", Key: "inner", OnBackend: failpolicy.Proceed})
		mustCompile(t, a, pay()).Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			_ = b.locks.Close(over)
			refused := inner.Run(ctx, &call{handle: func(context.Context, aspect.Grant) error {
				t.Error("the handler has run")
				return nil
			}})
			want(t, "cause", refused.Cause, failpolicy.Lost)
			want(t, "verdict", refused.Verdict, aspect.VerdictRefused)
			want(t, "message", refused.Refusal().Message, "The server was shut down while the request ran; its outcome is unknown")
			return nil
		}})
	})
}

// If the caller has lost the lock that a rule would re-enter, the call is refused as lost. The strategy for a taken lock
// does not apply.
func TestLoss_OfALockThatIsReentered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		again := pay()
		again.Name, again.OnBusy, again.OnBackend = "again", failpolicy.Proceed, failpolicy.Proceed
		inner := mustCompile(t, a, again)
		mustCompile(t, a, pay()).Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			b.redis.Expire("order:42")
			refused := inner.Run(ctx, &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
				t.Error("the handler has run")
				return nil
			}})
			want(t, "cause", refused.Cause, failpolicy.Lost)
			want(t, "verdict", refused.Verdict, aspect.VerdictRefused)
			return nil
		}})
	})
}

func TestLoss_ByCloseUnderTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		var running sync.WaitGroup
		running.Go(func() {
			out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
				<-ctx.Done()
				b.wantHeld(t, "order:42")
				return ctx.Err()
			}})
			want(t, "verdict", out.Verdict, aspect.VerdictLost)
			want(t, "refusal", out.Refusal().Error(), `lock rule "pay": lost: The server was shut down while the request ran; its outcome is unknown`)
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = b.locks.Close(ctx)
		running.Wait()
		want(t, "after Close", p.Run(t.Context(), &call{in: order{ID: "42"}}).Cause, failpolicy.Backend)
	})
}

func TestLoss_OfTwoRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())),
			ruleset.Rule{Name: "a", Key: "a", LeaseTime: time.Second, OnLost: failpolicy.Fail},
			ruleset.Rule{Name: "b", Key: "b", LeaseTime: time.Second, OnLost: failpolicy.Fail})
		out := p.Run(t.Context(), &call{handle: func(context.Context, aspect.Grant) error {
			time.Sleep(time.Minute) // virtual time
			return nil
		}})
		want(t, "verdict", out.Verdict, aspect.VerdictLost)
		want(t, "rule", out.Rule.Name, "a")
		want(t, "failures", len(obs.failures), 1)
	})
}

func TestLoss_OfAShadow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.LeaseTime, rule.OnLost, rule.DryRun = time.Second, failpolicy.Fail, true
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			time.Sleep(time.Minute) // virtual time
			return ctx.Err()
		}})
		want(t, "outcome", out, aspect.Outcome{Verdict: aspect.VerdictRan, Unlocked: aspect.UnlockedDryRun})
	})
}

// A handler that runs for longer than the limit of its rule has lost its lock, but the release frees the lock at once.
func TestRun_MaxHold(t *testing.T) {
	t.Parallel()
	obeys := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	answers := func(ctx context.Context) error { <-ctx.Done(); return nil }
	ignores := func(ctx context.Context) error { time.Sleep(61 * time.Second); return ctx.Err() } // virtual time
	for name, tc := range map[string]struct {
		onLost  failpolicy.OnLost
		handle  func(ctx context.Context) error
		verdict aspect.Verdict
	}{
		"cancel, it gives up":  {failpolicy.Cancel, obeys, aspect.VerdictLost},
		"cancel, it answers":   {failpolicy.Cancel, answers, aspect.VerdictRan},
		"fail, it gives up":    {failpolicy.Fail, obeys, aspect.VerdictLost},
		"fail, it answers":     {failpolicy.Fail, answers, aspect.VerdictLost},
		"ignore, it runs on":   {failpolicy.Ignore, ignores, aspect.VerdictRan},
		"ends within a minute": {failpolicy.Fail, func(context.Context) error { time.Sleep(59 * time.Second); return nil }, aspect.VerdictRan}, // virtual time
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				rule := pay()
				rule.MaxHold, rule.OnLost = time.Minute, tc.onLost
				p := mustCompile(t, mustAspect(t, b.locks), rule)
				start := time.Now()
				out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
					err := tc.handle(ctx)
					b.wantHeld(t, "order:42")
					return err
				}})
				inTime := time.Since(start) < time.Minute
				want(t, "verdict", out.Verdict, tc.verdict)
				want(t, "lost", out.Lost, !inTime)
				if tc.verdict == aspect.VerdictLost {
					want(t, "status", out.Status, failpolicy.Lost.Status())
					wantErr(t, "refusal", out.Refusal(), core.ErrHeldTooLong)
				}
				b.wantFree(t, "order:42")
			})
		})
	}
}

// A reload changes the limit of the next call. A call that runs keeps its limit.
func TestRun_MaxHoldAfterAReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		limited := func(d time.Duration) *ruleset.Set {
			return file(t, ruleset.Rule{Endpoint: payFunc, Key: "pay", MaxHold: d})
		}
		p := &mutableProvider{set: limited(time.Hour)}
		started := make(chan struct{}, 1)
		run := mustWrap(t, mustAspect(t, b.locks, aspect.WithSet(p)), ruleset.Rule{Endpoint: payFunc}, func(ctx context.Context, _ order) (time.Duration, error) {
			start := time.Now()
			started <- struct{}{}
			<-ctx.Done()
			return time.Since(start), nil
		})
		var running sync.WaitGroup
		running.Go(func() {
			took, err := run(t.Context(), order{})
			want(t, "error of the call before", err, nil)
			want(t, "limit of the call before", took, time.Hour)
		})
		<-started
		if err := p.replace(limited(time.Minute)); err != nil {
			t.Fatal(err)
		}
		running.Wait()
		took, err := run(t.Context(), order{})
		want(t, "error of the call after", err, nil)
		want(t, "limit of the call after", took, time.Minute)
	})
}
