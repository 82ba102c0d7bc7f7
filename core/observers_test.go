package core_test

import (
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestObservers_ReentryAndHandOff(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := make(chan *core.Hold)
		go func() {
			_, h, _ := locks.Lock("k").Acquire(t.Context())
			next <- h
		}()
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Eventually(t, "contention", func() bool { return obs.Count("contention") == 1 })
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, <-next)
		if r := obs.First(t, "hold end").Data.(core.HoldResult); !r.HandedOff || r.Err != nil {
			t.Errorf("the releaser: got %+v, want handed off", r)
		}
		for _, e := range obs.Events() {
			if r, ok := e.Data.(core.AcquireResult); ok && (r.HandedOff != (r.BlockedBy == hold.Field()) || r.Field != hold.Field()) {
				t.Errorf("acquire end: got %+v", r)
			}
		}
	})
}
