package locktest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Turns counts the turns of callers that take a lock again and again, and their longest wait.
type Turns struct {
	Taken   atomic.Int64
	longest atomic.Int64 // in nanoseconds
}

// Note counts a turn.
func (n *Turns) Note(waited time.Duration) {
	n.Taken.Add(1)
	for {
		longest := n.longest.Load()
		if int64(waited) <= longest || n.longest.CompareAndSwap(longest, int64(waited)) {
			return
		}
	}
}

// Longest returns the longest wait.
func (n *Turns) Longest() time.Duration { return time.Duration(n.longest.Load()) }

// TakeTurns starts n callers that take a lock again and again, each time for work, until ctx ends. The test waits for
// the callers at its end.
func TakeTurns(t *testing.T, ctx context.Context, lock core.Lock, n int, work time.Duration) *Turns {
	t.Helper()
	counted := &Turns{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				err := lock.Do(ctx, func(context.Context) error {
					counted.Note(time.Since(start))
					<-time.NewTimer(work).C
					return nil
				})
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("caller: %v", err)
					}
					return // otherwise a caller that fails at once would loop while the clock of the bubble stands still
				}
			}
		})
	}
	t.Cleanup(all.Wait)
	return counted
}

// KeepBusy starts n callers that take and free a lock again and again until ctx ends. It returns a channel that is
// closed when all have returned.
func KeepBusy(ctx context.Context, locks *core.Client, name string, n int) (done <-chan struct{}) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = locks.Lock(name).Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	go func() {
		all.Wait()
		close(ended)
	}()
	return ended
}

// Percentile returns the pth percentile of waits. It sorts waits.
func Percentile(waits []time.Duration, p int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[min(len(waits)-1, len(waits)*p/100)]
}
