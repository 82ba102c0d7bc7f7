package core_test

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// TestFault_ErrAtTheInstantOfTheLoss asks a context again and again while its lease
// runs out, from several goroutines: from the instant at which nothing of the lease
// is left, nothing says that it is alive, not even while the watchdog is just
// about to cancel it.
func TestFault_ErrAtTheInstantOfTheLoss(t *testing.T) {
	t.Parallel()
	locks := locktest.Embedded(t).Locks(locktest.Patient)
	var rounds sync.WaitGroup
	for range 30 {
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(20*time.Millisecond))
		for range 4 {
			rounds.Go(func() {
				for {
					over := hold.Remaining() <= 0
					if ctx.Err() != nil {
						return
					}
					if over {
						t.Error("nothing is left of the lease, and Err is nil")
						return
					}
				}
			})
		}
		rounds.Wait()
		if t.Failed() {
			return
		}
	}
}
