package aspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

// BenchmarkRun_Unlocked measures a run without key and lock.
func BenchmarkRun_Unlocked(b *testing.B) {
	p := mustCompile(b, mustAspect(b, offline(b)), ruleset.Rule{Name: "off", Key: "order:#{in.ID}", Disabled: true})
	c := &call{in: order{ID: "42"}}
	b.ReportAllocs()
	for b.Loop() {
		p.Run(b.Context(), c)
	}
}

// BenchmarkRun_NoKey measures a run that is refused without a lock.
func BenchmarkRun_NoKey(b *testing.B) {
	p := mustCompile(b, mustAspect(b, offline(b)), pay())
	c := &call{}
	b.ReportAllocs()
	for b.Loop() {
		p.Run(b.Context(), c)
	}
}

// TestRun_Allocations compares the allocations of a run and of a bare Lock.Do.
func TestRun_Allocations(t *testing.T) {
	srv := redistest.New(t)
	locks, err := core.New(srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	nothing := func(context.Context) error { return nil }
	lock := locks.Lock("order:42")
	// The embedded server allocates, too, and not always as much. So the test compares the smallest of several runs.
	bare := least(func() { _ = lock.Do(ctx, nothing, core.WaitTime(time.Second), core.Label("pay")) })
	p := mustCompile(t, mustAspect(t, locks), pay())
	c := &call{in: order{ID: "42"}}
	under := least(func() { p.Run(ctx, c) })
	t.Logf("a bare lock: %v allocations, under a rule: %v", bare, under)
	if under > bare+15 {
		t.Errorf("a rule allocates %v times more than its lock, want at most 15", under-bare)
	}
}

func least(f func()) float64 {
	best := testing.AllocsPerRun(10, f)
	for range 5 {
		best = min(best, testing.AllocsPerRun(10, f))
	}
	return best
}
