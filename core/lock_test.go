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
	byDo := testing.AllocsPerRun(100, func() { _ = l.Do(ctx, do, core.WaitTime(-1)) })
	byCall := testing.AllocsPerRun(100, func() { _, _ = core.Call(ctx, l, call, core.WaitTime(-1)) })
	locktest.WantErr(t, l.Do(ctx, do, core.WaitTime(-1)), core.ErrInvalid)
	locktest.WantSame(t, "allocations of Do", byDo, byCall)
}
