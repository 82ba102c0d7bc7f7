package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// Callers of two clients perform random operations on locks. No lock has two holders at a time. At the end nothing is
// left in Redis or in the clients, which close at once.
func TestRun_RandomOperations(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(60, 3)) {
		locktest.ParallelBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T, b *locktest.Redis) {
			locks := []*core.Client{newFarAway(b), newFarAway(b)}
			if seed%3 > 0 {
				core.LetRunsLast(locks[0])
			}
			m := &mixture{t: t, holders: make(map[string]holderOf), fields: make(map[string]int)}
			var callers sync.WaitGroup
			for i := range 12 {
				callers.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(i)))
					for range 60 {
						m.call(rnd, locks[i%2])
					}
				})
			}
			callers.Wait()
			m.rest.Wait()
			locktest.Pass(5 * time.Second) // the longest fixed lease
			for _, c := range locks {
				locktest.WantSame(t, "stats", c.Stats(), core.Stats{})
				start := time.Now()
				locktest.Must(t, c.Close(context.Background()))
				locktest.WantSoon(t, "Close took %s", start, time.Second)
			}
			b.WantGone("a", "b", "spin")
			if m.acquired < 100 {
				t.Errorf("%d acquisitions, want at least 100: nothing is tested", m.acquired)
			}
		})
	}
}

// newFarAway returns a client whose commands and answers take up to a millisecond each.
func newFarAway(b *locktest.Redis) *core.Client {
	b.T.Helper()
	rdb := b.Connect()
	rdb.AddHook(&locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
		time.Sleep(rand.N(time.Millisecond)) // in the time of the bubble
		err := next()
		time.Sleep(rand.N(time.Millisecond)) // in the time of the bubble
		return err
	}})
	return locktest.NewClient(b.T, rdb)
}

// mixture performs the random operations of the callers of a test.
type mixture struct {
	t    *testing.T
	rest sync.WaitGroup // goroutines that the callers start

	mu       sync.Mutex
	holders  map[string]holderOf
	fields   map[string]int // value of forced when the first holder with the field called Acquire
	forced   int            // number of begins and ends of ForceRelease
	acquired int
}

// holderOf is the last holder of a key, with all its holds.
type holderOf struct {
	holds  []*core.Hold
	forced int
}

// forces returns how often a ForceRelease has begun or ended.
func (m *mixture) forces() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forced
}

// holds records a holder. The argument forced is the value of m.forced at the time of the call of Acquire. The previous
// holder of each key must have ended, unless a ForceRelease may have hit its field.
func (m *mixture) holds(forced int, hold *core.Hold, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, seen := m.fields[hold.Field()]; seen {
		forced = first
	}
	m.fields[hold.Field()] = forced
	for _, key := range keys {
		before := m.holders[key]
		for _, h := range before.holds {
			if before.forced == m.forced && h.Remaining() > 0 && hold.Remaining() > 0 {
				m.t.Errorf("%s and %s hold %s at the same time", h.Field(), hold.Field(), key)
			}
		}
		m.holders[key] = holderOf{[]*core.Hold{hold}, forced}
	}
	m.acquired++
}

// alsoHolds records another hold of a holder.
func (m *mixture) alsoHolds(hold, more *core.Hold, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if h := m.holders[key]; slices.Contains(h.holds, hold) {
			m.holders[key] = holderOf{append(h.holds, more), h.forced}
		}
	}
}

func (m *mixture) force(ctx context.Context, lock core.Lock) {
	m.mu.Lock()
	m.forced++
	m.mu.Unlock()
	if _, err := lock.ForceRelease(ctx); err != nil {
		m.t.Errorf("force: %v", err)
	}
	m.mu.Lock()
	m.forced++
	m.mu.Unlock()
}

// call makes an acquisition and performs the operations of its holder.
func (m *mixture) call(rnd *rand.Rand, locks *core.Client) {
	within := func(d time.Duration) time.Duration { return time.Duration(1 + rnd.Int64N(int64(d))) }
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rnd.IntN(5) == 0 {
		defer time.AfterFunc(within(20*time.Millisecond), cancel).Stop()
	}
	keys := []string{"a"}
	lock := locks.Lock("a")
	switch rnd.IntN(8) {
	case 0:
		keys, lock = []string{"spin"}, locks.SpinLock("spin")
	case 1:
		keys, lock = []string{"a", "b"}, locks.MultiLock("a", "b")
	case 2:
		keys, lock = []string{"b"}, locks.Lock("b")
	}
	var opts []core.AcquireOption
	switch rnd.IntN(6) {
	case 0:
		opts = append(opts, core.LeaseTime(within(2*time.Second)+10*time.Millisecond))
	case 1:
		opts = append(opts, core.LeaseTime(100*time.Millisecond))
	case 2:
		if len(keys) == 1 {
			opts = append(opts, core.WithToken())
		}
	}
	switch rnd.IntN(4) {
	case 0:
		opts = append(opts, core.WaitTime(0))
	case 1:
		opts = append(opts, core.WaitTime(within(50*time.Millisecond)+10*time.Millisecond))
	}
	if rnd.IntN(6) == 0 {
		opts = append(opts, core.BeforeWait(func(context.Context) error { time.Sleep(within(time.Millisecond)); return nil })) // in the time of the bubble
	}
	forced := m.forces()
	held, hold, err := lock.Acquire(ctx, opts...)
	if err != nil {
		if !errors.Is(err, core.ErrNotAcquired) {
			m.t.Errorf("Acquire: %v", err)
		}
		return
	}
	m.holds(forced, hold, keys...)
	if rnd.IntN(3) > 0 {
		time.Sleep(within(2 * time.Millisecond)) // in the time of the bubble
	}
	if rnd.IntN(20) == 0 {
		time.Sleep(within(150 * time.Millisecond)) // in the time of the bubble
	}
	m.end(held, rnd, lock, hold, keys)
}

// end performs random operations on a hold and ends it.
func (m *mixture) end(ctx context.Context, rnd *rand.Rand, lock core.Lock, hold *core.Hold, keys []string) {
	within := func(d time.Duration) time.Duration { return time.Duration(1 + rnd.Int64N(int64(d))) }
	free := context.Background()
	switch rnd.IntN(12) {
	case 0, 1:
		_, inner, err := lock.Acquire(ctx, core.WaitTime(within(time.Second)+time.Millisecond), core.LeaseTime(within(3*time.Second)+time.Millisecond))
		if err == nil {
			m.alsoHolds(hold, inner, keys...)
			if rnd.IntN(2) == 0 {
				hold, inner = inner, hold
			}
			m.released(inner.Release(free))
		}
	case 2:
		m.released(hold.Refresh(free, within(time.Second)+10*time.Millisecond))
	case 3, 4: // concurrently with the release
		late := rnd.IntN(3)
		m.rest.Go(func() {
			switch late {
			case 0:
				m.released(hold.Refresh(free, 200*time.Millisecond))
			case 1:
				m.released(hold.Leave(free, 10*time.Millisecond))
			default:
				if _, inner, err := lock.Acquire(context.WithoutCancel(ctx), core.WaitTime(5*time.Millisecond)); err == nil {
					m.alsoHolds(hold, inner, keys...)
					m.released(inner.Release(free))
				}
			}
		})
		if rnd.IntN(2) == 0 {
			time.Sleep(within(time.Millisecond)) // in the time of the bubble
		}
	case 5:
		_, moved := hold.Handover()
		m.alsoHolds(hold, moved, keys...)
		m.rest.Go(func() {
			time.Sleep(time.Millisecond) // in the time of the bubble
			m.released(moved.Release(free))
		})
		return
	case 6:
		m.released(hold.Leave(free, within(5*time.Millisecond)+time.Millisecond))
		return
	case 7:
		if len(keys) == 1 && rnd.IntN(5) == 0 {
			m.force(free, lock)
		}
	}
	m.released(hold.Release(free))
}

func (m *mixture) released(err error) {
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrNotHeld) && !errors.Is(err, core.ErrInvalid) {
		m.t.Errorf("%v", err)
	}
}
