package aspect_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
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
func brokenRules() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{
		Rule:     func(aspect.RuleInfo) { panic("rule") },
		Decision: func(context.Context, aspect.Decision) { panic("decision") },
		Failure:  func(context.Context, aspect.Failure) { panic("failure") },
		Unlocked: func(context.Context, aspect.UnlockedRun) { panic("unlocked") },
	}}
}

// brokenObserver returns an observer that panics whenever it is notified.
func brokenObserver() *core.Observer {
	observer := brokenRules()
	observer.HoldEnd = func(context.Context, core.HoldResult) { panic("release") }
	return observer
}

func TestObserver_PanicsAreContained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := pay()
		rule.OnBusy = failpolicy.Proceed
		rule.WaitTime = time.Second
		p := mustCompile(t, mustAspect(t, b.observe(t, brokenObserver(), obs.observer())), rule)
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

func TestObserver_Reload(t *testing.T) {
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
	var reloads []ruleset.Reload
	obs := &aspect.Observer{Reload: func(r ruleset.Reload) { reloads = append(reloads, r) }}
	locks, err := core.New(redistest.New(t).Client(), core.WithObserver(&core.Observer{Rules: obs}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	for range 2 {
		mustAspect(t, locks, aspect.WithSet(live))
	}
	if len(reloads) != 1 || reloads[0].Set != live.Current() {
		t.Errorf("got %v, want the content in force, once", reloads)
	}
	if err := live.Reload(); err != nil {
		t.Fatal(err)
	}
	want(t, "reloads", len(reloads), 2)
}

func TestObserver_DecisionWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		obs := &record{}
		rule := pay()
		rule.WaitTime = 3 * time.Second
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
		b.redis.Take("order:42", time.Hour)
		p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "waited", obs.failures[0].Waited, 3*time.Second)
		want(t, "waited", obs.last(t).Waited, 3*time.Second)
	})
}

// An observer that observes only rules is also passed to the lock client, because no other option takes
// observers.
func TestObserver_OnlyOfRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		obs := &record{}
		b := newBench(t, core.WithObserver(obs.observer()))
		p := mustCompile(t, mustAspect(t, b.locks), pay())
		p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "rules", len(obs.rules), 1)
		want(t, "decisions", len(obs.decisions), 1)
	})
}

// wrongObserver has the method that Rules requires, but it is not an aspect.Observer.
type wrongObserver struct{}

func (wrongObserver) ObservesRules() {}

func TestObserver_OfAnotherType(t *testing.T) {
	t.Parallel()
	for _, rules := range []interface{ ObservesRules() }{wrongObserver{}, (*aspect.Observer)(nil)} {
		_, err := aspect.New(newBench(t, core.WithObserver(&core.Observer{Rules: rules})).locks)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("core.WithObserver: Rules is %T, ", rules)) {
			t.Errorf("got %v", err)
		}
	}
}

func TestObserver_PanicIsReportedOnce(t *testing.T) { //nolint:paralleltest // all tests share the log
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.observe(t, brokenRules())), pay())
		for range 3 {
			want(t, "verdict", p.Run(t.Context(), &call{in: order{ID: "42"}}).Verdict, aspect.VerdictRan)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, ".brokenRules.") != 2 || strings.Contains(text, "decision\"") {
			t.Errorf("logged: %s", text)
		}
	})
}

// Without an observer of warnings, the log gets one line for each warning.
func TestObserver_WarningWithoutAnObserver(t *testing.T) { //nolint:paralleltest // all tests share the log
	for name, tt := range map[string]struct {
		observers []*core.Observer
		want      int
	}{
		"no observer":      {nil, 1},
		"another observer": {[]*core.Observer{brokenObserver()}, 1},
		"an observer":      {[]*core.Observer{{Rules: &aspect.Observer{Warning: func(*ruleset.Problem) {}}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)
			mustAspect(t, newBench(t, core.WithObserver(tt.observers...)).locks).Warn(&ruleset.Problem{Field: "key", Message: "odd"})
			text := log.String()
			if n := strings.Count(text, "\n"); n != tt.want || n > 0 && (!strings.Contains(text, "level=WARN") || !strings.Contains(text, "odd")) {
				t.Errorf("logged: %q", text)
			}
		})
	}
}
