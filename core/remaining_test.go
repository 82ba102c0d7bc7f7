package core_test

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// ends are the results of the holds that ended, in order.
func holdResults(r *locktest.Recorder) (all []core.HoldResult) {
	for _, e := range r.Events() {
		if end, ok := e.Data.(core.HoldResult); ok {
			all = append(all, end)
		}
	}
	return all
}

// remaining ends one hold of a minute after some time and gives what the observers are told was
// left of its lease.
func remaining(t *testing.T, b *locktest.Redis, after time.Duration, end func(h *core.Hold) error) time.Duration {
	t.Helper()
	obs := &locktest.Recorder{}
	_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Minute))
	locktest.Pass(after)
	locktest.WantOK(t, end(hold))
	return holdResults(obs)[0].Remaining
}

// The observers are told what was left of the lease when the end of a hold began: by a Release,
// by Leave and by a Handover.
func TestHoldResult_HasTheLeaseThatWasLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *core.Hold) error{
		"release": func(t *testing.T, h *core.Hold) error { t.Helper(); return h.Release(t.Context()) },
		"leave":   func(t *testing.T, h *core.Hold) error { t.Helper(); return h.Leave(t.Context(), time.Second) },
		"handover": func(t *testing.T, h *core.Hold) error {
			t.Helper()
			_, next := h.Handover()
			return next.Release(t.Context())
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			left := remaining(t, b, 45*time.Second, func(h *core.Hold) error { return end(t, h) })
			if left <= 14*time.Second || left > 15*time.Second {
				t.Errorf("got %s after 45 s of a minute, want a little less than 15 s", left)
			}
		})
	}
}

// Nothing was left of a lease that was lost, whoever finds out: the clock, or only the release.
func TestHoldResult_NothingIsLeftOfALostLease(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *locktest.Redis){
		"its time is over":           func(*locktest.Redis) { locktest.Pass(2 * time.Minute) },
		"the key has gone meanwhile": func(b *locktest.Redis) { b.Del(b.T.Context(), "k") },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Minute))
			lose(b)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			if end := holdResults(obs)[0]; end.Remaining != 0 || !end.Lost {
				t.Errorf("got %s of a lease that was lost: %t", end.Remaining, end.Lost)
			}
		})
	}
}

// The oldest hold is that which was acquired first of those that are held now, of whichever key;
// a release makes the next one the oldest.
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

// Stats may be read while locks come and go.
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
						t.Errorf("got %+v", s)
					}
					locktest.WantOK(t, hold.Release(t.Context()))
				}
			})
		}
		callers.Wait()
	})
}
