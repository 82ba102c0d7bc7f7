package aspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

// BenchmarkRun_Unlocked is the machinery of a matched rule without key and lock.
func BenchmarkRun_Unlocked(b *testing.B) {
	p := mustCompile(b, mustAspect(b, offline(b)), ruleset.Rule{Name: "off", Key: "order:#{in.ID}", Disabled: true})
	c := &call{in: order{ID: "42"}}
	b.ReportAllocs()
	for b.Loop() {
		p.Run(b.Context(), c)
	}
}

// BenchmarkRun_NoKey is the machinery with a refusal, and no lock.
func BenchmarkRun_NoKey(b *testing.B) {
	p := mustCompile(b, mustAspect(b, offline(b)), pay())
	c := &call{}
	b.ReportAllocs()
	for b.Loop() {
		p.Run(b.Context(), c)
	}
}

// TestRun_AllocatesLittleMoreThanTheLock compares a run with a bare Lock.Do.
func TestRun_AllocatesLittleMoreThanTheLock(t *testing.T) {
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
	// The embedded server allocates, too, and by chance: compare the best of some.
	bare := least(func() { _ = lock.Do(ctx, nothing, core.WaitTime(time.Second), core.Label("pay")) })
	p := mustCompile(t, mustAspect(t, locks), pay())
	c := &call{in: order{ID: "42"}}
	under := least(func() { p.Run(ctx, c) })
	t.Logf("a bare lock: %v allocations, under a rule: %v", bare, under)
	if under > bare+15 {
		t.Errorf("a rule adds %v allocations to those of its lock, want at most 15", under-bare)
	}
}

func least(f func()) float64 {
	best := testing.AllocsPerRun(10, f)
	for range 5 {
		best = min(best, testing.AllocsPerRun(10, f))
	}
	return best
}
