package aspect_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// brokenRules panics whenever it is notified of rules and calls.
type brokenRules struct{}

func (brokenRules) ObserveRule(aspect.RuleInfo)                         { panic("rule") }
func (brokenRules) ObserveDecision(context.Context, aspect.Decision)    { panic("decision") }
func (brokenRules) ObserveFailure(context.Context, aspect.Failure)      { panic("failure") }
func (brokenRules) ObserveUnlocked(context.Context, aspect.UnlockedRun) { panic("unlocked") }

// broken panics whenever it is notified.
type broken struct{ brokenRules }

func (broken) ObserveHoldEnd(context.Context, core.HoldResult) { panic("release") }

func TestObservers_PanicsAreContainedAndTheOthersStillTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := pay()
		rule.OnBusy = failpolicy.Proceed
		rule.WaitTime = time.Second
		p := mustCompile(t, mustAspect(t, b.observed(t, broken{}, obs)), rule)
		c := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			b.redis.Down()
			return nil
		}}
		want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
		b.redis.Up()
		b.redis.Take("order:42", time.Hour)
		time.Sleep(5 * time.Second) // until the client has found Redis again
		c.handle = nil
		want(t, "verdict", p.Run(t.Context(), c).Cause, failpolicy.Busy)
		want(t, "handled", c.handled, 2)
		want(t, "rules", len(obs.rules), 1)
		want(t, "decisions", len(obs.decisions), 2)
		want(t, "failures", len(obs.failures), 1)
		want(t, "unlocked", len(obs.unlocked), 1)
		want(t, "release failures", len(obs.releases), 1)
	})
}

// lockRecord observes locks, rules and reloads.
type lockRecord struct {
	record
	reloads []ruleset.Reload
}

func (*lockRecord) ObserveAcquireEnd(context.Context, core.AcquireResult) {}
func (r *lockRecord) ObserveReload(reload ruleset.Reload)                 { r.reloads = append(r.reloads, reload) }

func TestObservers_OfTheLockClient_Reloads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - func: pay\n    key: \"a:#{in.ID}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := ruleset.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Close() })
	obs := &lockRecord{}
	locks, err := core.New(redistest.New(t).Client(), core.WithObserver(obs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	for range 2 {
		mustAspect(t, locks, aspect.WithSet(live))
	}
	if len(obs.reloads) != 1 || obs.reloads[0].Set != live.Current() {
		t.Errorf("got %v, want the content in force, once", obs.reloads)
	}
	if err := live.Reload(); err != nil {
		t.Fatal(err)
	}
	want(t, "reloads", len(obs.reloads), 2)
}

func TestObservers_AreToldHowLongTheCallWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := pay()
		rule.WaitTime = 3 * time.Second
		p := mustCompile(t, mustAspect(t, b.observed(t, obs)), rule)
		b.redis.Take("order:42", time.Hour)
		p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "waited", obs.failures[0].Waited, 3*time.Second)
		want(t, "waited", obs.last(t).Waited, 3*time.Second)
	})
}

// An observer of rules alone is given to the lock client, too: nothing else takes observers.
func TestObservers_OfTheLockClient_OnlyOfRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		obs := &record{}
		b := newBench(t, core.WithObserver(obs))
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "rules", len(obs.rules), 1)
		want(t, "decisions", len(obs.decisions), 1)
	})
}

// almost has the method of an observer with another signature.
type almost struct{}

func (almost) ObserveDecision(aspect.Decision) {}

func TestObservers_OfNoInterface(t *testing.T) {
	t.Parallel()
	_, err := aspect.New(newBench(t, core.WithObserver(almost{})).locks)
	if err == nil || !strings.Contains(err.Error(), "core.WithObserver: aspect_test.almost implements none of the observer interfaces") {
		t.Errorf("got %v", err)
	}
}

// onlyLocks observes locks, and no rules.
type onlyLocks struct{}

func (onlyLocks) ObserveAcquireEnd(context.Context, core.AcquireResult) {}

func TestObservers_OfTheLockClient_OnlyOfLocks(t *testing.T) {
	t.Parallel()
	mustAspect(t, newBench(t, core.WithObserver(onlyLocks{})).locks)
}
