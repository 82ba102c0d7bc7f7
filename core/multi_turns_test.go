package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// MultiLocks of several processes have some keys in common. If keys are taken one by one, a caller holds its first
// key while it waits for the others, so that this key is rarely free.
func TestMultiLock_PartlyOverlappingInSeveralProcesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		apart   bool
		least   int64 // turns of each process
		longest time.Duration
	}{
		"one slot":     {apart: false, least: 20, longest: 3 * time.Second},
		"across slots": {apart: true, least: 3, longest: 9 * time.Second},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			counts := make(map[string]*locktest.Turns)
			for client := range 3 {
				locks := b.Locks()
				if c.apart {
					core.PutKeysApart(locks)
				}
				for _, names := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
					counts[fmt.Sprint(client, names)] = locktest.TakeTurns(t, ctx, locks.MultiLock(names...), 1, 10*time.Millisecond)
				}
			}
			locktest.Pass(10 * time.Second)
			for name, got := range counts {
				t.Logf("%s: %d turns, %s at most", name, got.Taken.Load(), got.Longest())
				if got.Taken.Load() < c.least || got.Longest() > c.longest {
					t.Errorf("%s: %d turns, waits of up to %s", name, got.Taken.Load(), got.Longest())
				}
			}
		})
	}
}
