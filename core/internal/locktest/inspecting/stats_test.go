package inspecting_test

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// OldestHold is the age of the hold that was acquired first, of those that have not ended. After the release of that
// hold, the next one is the oldest.
func TestStats_OldestHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		var holds []*core.Hold
		for _, key := range []string{"a", "b", "c"} {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock(key))
			holds = append(holds, hold)
			locktest.Pass(time.Second)
		}
		for _, want := range []time.Duration{3 * time.Second, 2 * time.Second, time.Second} {
			locktest.WantSame(t, "the oldest hold", locks.Stats().OldestHold, want)
			locktest.MustRelease(t, holds[0])
			holds = holds[1:]
		}
		locktest.WantSame(t, "without a hold", locks.Stats().OldestHold, 0)
	})
}

// Stats can be read while holds come and go.
func TestStats_WhileHoldsComeAndGo(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range 25 {
					_, hold, err := locks.Lock("k").Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if s := locks.Stats(); s.OldestHold < 0 {
						t.Errorf("OldestHold is negative: %+v", s)
					}
					locktest.WantOK(t, hold.Release(t.Context()))
				}
			})
		}
		callers.Wait()
	})
}
