package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// A client that waits beside one that keeps all permits busy gets its turns.
func TestPermitSemaphore_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		busy, lone := b.locks(), b.locks()
		ctx, stop := context.WithCancel(context.Background())
		var callers sync.WaitGroup
		var served atomic.Int64
		for i := range 8 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_ = busy.PermitSemaphore("pool", 2).Do(ctx, func(context.Context) error {
						served.Add(1)
						time.Sleep(time.Duration(1000+100*i) * time.Microsecond) // the work, in the time of the bubble
						return nil
					})
				}
			})
		}
		var longest time.Duration
		for range 20 {
			start := time.Now()
			_, hold := acquired(t, t.Context(), lone.PermitSemaphore("pool", 2).Lock, core.WaitTime(10*time.Second))
			longest = max(longest, time.Since(start))
			released(t, hold)
		}
		stop()
		callers.Wait()
		t.Logf("the longest of 20 waits: %s, %d turns of the others", longest, served.Load())
		if longest > 2*time.Second {
			t.Errorf("it waited %s", longest)
		}
	})
}
