package aspect_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// A reader who wants to write is refused at once, as the program's mistake, and the reason is
// there for its log.
func TestKind_WriteInsideOfRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, obs := newBench(t), &record{}
		a := mustAspect(t, b.observed(t, obs.observer()))
		write := payAs(ruleset.Write)
		write.OnKey, write.OnBusy = failpolicy.Proceed, failpolicy.Proceed
		wantProgramsMistake(t, obs, mustCompile(t, a, payAs(ruleset.Read)), mustCompile(t, a, write))
		b.wantFree(t, "order:42")
	})
}

func TestKind_ReadInsideOfWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		reader := mustCompile(t, a, payAs(ruleset.Read))
		var inner aspect.Outcome
		mustCompile(t, a, payAs(ruleset.Write)).Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			inner = reader.Run(ctx, &call{in: order{ID: "42"}})
			return nil
		}})
		want(t, "verdict of the reader", inner.Verdict, aspect.VerdictRan)
		want(t, "its cause", inner.Cause, "")
		b.wantFree(t, "order:42")
	})
}

// As many calls as the kind lets in are in at a time, in two clients, for real and in a dry
// run; one more is busy.
func TestKind_AsManyAtOnceAsItLetsIn(t *testing.T) {
	t.Parallel()
	const crowd = 5
	for kind, in := range map[ruleset.Kind]int{ruleset.Read: crowd, ruleset.Semaphore: 3} {
		for _, dry := range []bool{false, true} {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { callAtOnce(t, kind, dry, crowd, in) })
			})
		}
	}
}

// callAtOnce makes calls that stay for a second each, and wants so many of them to be in.
func callAtOnce(t *testing.T, kind ruleset.Kind, dry bool, calls, in int) {
	t.Helper()
	b := newBench(t)
	rule := payAs(kind)
	rule.WaitTime, rule.DryRun = ruleset.NoWait, dry
	if kind == ruleset.Semaphore {
		rule.Permits = in
	}
	obs := &record{}
	points := []*aspect.Point{
		mustCompile(t, mustAspect(t, b.observed(t, obs.observer())), rule),
		mustCompile(t, mustAspect(t, b.observed(t, obs.observer())), rule),
	}
	done := make(chan struct{})
	for i := range calls {
		go func() {
			points[i%2].Run(t.Context(), &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
				time.Sleep(time.Second) // in the time of the bubble
				return nil
			}})
			done <- struct{}{}
		}()
		time.Sleep(100 * time.Millisecond) // likewise
	}
	for range calls {
		<-done
	}
	busy := 0
	for _, d := range obs.decisions {
		if d.Cause == failpolicy.Busy {
			busy++
		}
	}
	want(t, "calls that were told", len(obs.decisions), calls)
	want(t, "busy calls", busy, calls-in)
}

// A guard may meet a call again, for example after a layer that copies the request. It enters the
// lock that the call holds. A semaphore has no re-entry: the call uses the permit that it holds.
func TestKind_TheSameCallTwice(t *testing.T) {
	t.Parallel()
	for _, kind := range []ruleset.Kind{
		ruleset.Reentrant, ruleset.Fair, ruleset.Fenced, ruleset.Spin, ruleset.Read, ruleset.Write, ruleset.Semaphore,
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dry run %v", kind, dry), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { callTwice(t, kind, dry) })
			})
		}
	}
}

func callTwice(t *testing.T, kind ruleset.Kind, dry bool) {
	t.Helper()
	b, obs := newBench(t), &record{}
	rule := payAs(kind)
	rule.WaitTime, rule.DryRun = ruleset.NoWait, dry
	if kind == ruleset.Semaphore {
		rule.Permits = 1
	}
	p := mustCompile(t, mustAspect(t, b.observed(t, obs.observer())), rule)
	inner := &call{in: order{ID: "42"}}
	out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
		want(t, "inner verdict", p.Run(ctx, inner).Verdict, aspect.VerdictRan)
		want(t, "inner runs", inner.handled, 1)
		stranger := p.Run(core.Detach(ctx), &call{in: order{ID: "42"}})
		want(t, "a call beside it is refused", stranger.Verdict == aspect.VerdictRefused, !dry && kind != ruleset.Read)
		return nil
	}})
	want(t, "outer verdict", out.Verdict, aspect.VerdictRan)
	want(t, "cause of the inner call", obs.decisions[0].Cause, "")
	b.wantFree(t, "order:42")
}
