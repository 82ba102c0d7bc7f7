package core_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Do calls Call with a closure, which is not allocated. The option is invalid, so that both return before they send
// anything: a server in this process would allocate, too.
func TestDo_AllocatesLikeCall(t *testing.T) {
	l := locktest.Embedded(t).Locks().Lock("k")
	ctx := t.Context()
	do := func(context.Context) error { return nil }
	call := func(context.Context) (int, error) { return 0, nil }
	byDo := fewestAllocs(func() { _ = l.Do(ctx, do, core.WaitTime(-1)) })
	byCall := fewestAllocs(func() { _, _ = core.Call(ctx, l, call, core.WaitTime(-1)) })
	locktest.WantErr(t, l.Do(ctx, do, core.WaitTime(-1)), core.ErrInvalid)
	locktest.WantSame(t, "allocations of Do", byDo, byCall)
}

// fewestAllocs returns the fewest allocations of a run. A run has more if a pool is empty: the race detector empties
// pools at random.
func fewestAllocs(run func()) float64 {
	fewest := testing.AllocsPerRun(1, run)
	for range 100 {
		fewest = min(fewest, testing.AllocsPerRun(1, run))
	}
	return fewest
}
