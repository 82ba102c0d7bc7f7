package kinds_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// contender is a process of a contest for a Redlock, with the turns of its callers.
type contender struct {
	lock  core.Lock
	sent  []*faultproxy.Rule
	turns atomic.Int64
}

// contenders makes processes with separate connections to all servers.
func contenders(t *testing.T, servers []*locktest.Redis, n int) []*contender {
	t.Helper()
	all := make([]*contender, n)
	for i := range all {
		c := &contender{}
		var clients []*core.Client
		for j, s := range servers {
			proxy, rdb := faultproxy.Around(t, s.Client)
			c.sent = append(c.sent, proxy.Watch(locktest.Scripts))
			locktest.Wobble(proxy, uint64(i*len(servers)+j))
			clients = append(clients, locktest.NewClient(t, rdb))
		}
		rand.New(rand.NewPCG(uint64(i), 7)).Shuffle(len(clients), func(a, b int) { clients[a], clients[b] = clients[b], clients[a] })
		c.lock = core.Redlock("k", clients...)
		all[i] = c
	}
	return all
}

// contend runs callers in every process, which take the lock again and again for some time.
func contend(t *testing.T, all []*contender, callers int, lasts time.Duration, work func(ctx context.Context), opts ...core.AcquireOption) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	var running sync.WaitGroup
	for _, c := range all {
		for range callers {
			running.Go(func() {
				for ctx.Err() == nil {
					err := c.lock.Do(ctx, func(ctx context.Context) error {
						c.turns.Add(1)
						work(ctx)
						return nil
					}, opts...)
					if err != nil && !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
						t.Error(err)
					}
					if errors.Is(err, core.ErrUnavailable) {
						wait(ctx, time.Millisecond) // without this pause, failing at once would stop the time of the bubble
					}
				}
			})
		}
	}
	running.Wait()
}

// Processes that contend get the lock one at a time, each has its turns, and the lock is never free for a long time.
func TestRedlock_Contention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers, processes, callers int
		least                       int64 // turns of 1 ms in a second
	}{
		"two":               {3, 2, 1, 150},
		"four":              {5, 4, 1, 120},
		"one of many":       {3, 1, 32, 300},
		"four of many each": {5, 4, 8, 100},
	} {
		locktest.ParallelBubbleOf(t, name, c.servers, func(t *testing.T, servers []*locktest.Redis) {
			all := contenders(t, servers, c.processes)
			var inside atomic.Int64
			seconds := thorough.Or(2, 1)
			contend(t, all, c.callers, time.Duration(seconds)*time.Second, func(context.Context) {
				if inside.Add(1) > 1 {
					t.Error("two holders")
				}
				<-time.NewTimer(time.Millisecond).C
				inside.Add(-1)
			})
			var turns, sent int64
			var of []int64
			for _, p := range all {
				of = append(of, p.turns.Load())
				turns += p.turns.Load()
				for _, rule := range p.sent {
					sent += int64(rule.Hits())
				}
			}
			t.Logf("turns %v, %.1f commands each", of, float64(sent)/float64(turns))
			if turns < c.least*int64(seconds) || slices.Min(of) < turns/int64(8*len(of)) {
				t.Errorf("turns %v, want %d a second in all", of, c.least)
			}
			locktest.WantNowhere(t, servers, "k")
		})
	}
}

// Whatever happens to a minority of the servers, the lock never has two holders. When all servers work again, nothing
// is left.
func TestRedlock_NeverTwoHolders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(3, 1)) {
		locktest.BubbleOf(t, 5, func(t *testing.T, servers []*locktest.Redis) {
			all := contenders(t, servers, 3)
			r := rand.New(rand.NewPCG(seed, 3))
			var mu sync.Mutex
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n)
			}
			random := func(n int) time.Duration { return time.Duration(draw(n)) * time.Millisecond }
			faults, stop := context.WithCancel(t.Context())
			var fate sync.WaitGroup
			fate.Go(func() {
				for faults.Err() == nil {
					s, s2 := servers[draw(len(servers))], servers[draw(len(servers))]
					if draw(3) == 0 { // otherwise nothing fails
						s.Embedded.Down()
						s2.Embedded.Down()
						locktest.Pass(random(4000))
						s.Embedded.Up()
						s2.Embedded.Up()
					}
					locktest.Pass(5*time.Second + random(1000)) // longer than a lease
				}
			})
			var holder atomic.Pointer[context.Context]
			contend(t, all, 2, time.Minute, func(ctx context.Context) {
				if other := holder.Load(); other != nil && (*other).Err() == nil {
					t.Error("two holders")
				}
				holder.Store(&ctx)
				select {
				case <-time.NewTimer(random(1500)).C:
				case <-ctx.Done():
				}
				holder.CompareAndSwap(&ctx, nil)
			}, core.LeaseTime(3*time.Second), core.WaitTime(5*time.Second))
			stop()
			fate.Wait()
			for _, c := range all {
				if n := c.turns.Load(); n < 5 {
					t.Errorf("%d turns, want at least 5", n)
				}
			}
			locktest.Pass(10 * time.Second)
			locktest.WantHeldOn(t, servers, "k", 0)
		})
	}
}
