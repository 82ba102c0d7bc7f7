package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Callers of single keys keep both keys busy nearly all the time: of the same client, of
// others, for short and for long. A waiter for both gets its turn all the same, within
// a number of turns of theirs that does not depend on how many they are.
func TestMultiLock_IsNotStarvedBySingleKeys(t *testing.T) {
	t.Parallel()
	const rounds = 20
	for name, c := range map[string]struct {
		clients, callers int
		work             time.Duration
		turns            int64 // of both keys together, at most
	}{
		"own callers":                    {clients: 0, callers: 8, work: time.Millisecond, turns: 150},
		"own callers, long turns":        {clients: 0, callers: 3, work: 300 * time.Millisecond, turns: 150},
		"callers elsewhere":              {clients: 2, callers: 4, work: time.Millisecond, turns: 1000},
		"callers elsewhere, long turns":  {clients: 2, callers: 2, work: 300 * time.Millisecond, turns: 150},
		"many own callers, hardly a gap": {clients: 0, callers: 40, work: 100 * time.Microsecond, turns: 1500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				locks := b.locks()
				busy := []*core.Client{locks}
				for range c.clients {
					busy = append(busy, b.locks())
				}
				if c.clients > 0 {
					busy = busy[1:]
				}
				var counts []*turns
				for _, client := range busy {
					for _, key := range []string{"a", "b"} {
						counts = append(counts, callers(t, ctx, client.Lock(key), c.callers, c.work))
					}
				}
				taken := func() (n int64) {
					for _, count := range counts {
						n += count.taken.Load()
					}
					return n
				}
				pass(time.Second)
				var most int64
				var longest time.Duration
				for range rounds {
					before, start := taken(), time.Now()
					must(t, locks.MultiLock("a", "b").Do(ctx, func(context.Context) error { return nil }))
					most, longest = max(most, taken()-before), max(longest, time.Since(start))
					pass(10 * time.Millisecond)
				}
				t.Logf("at most %d turns of others at both keys, and %s", most, longest)
				if most > c.turns {
					t.Errorf("waited for %d turns of others, want %d at most", most, c.turns)
				}
			})
		})
	}
}

// lockAll is RedissonMultiLock.lock: the locks in the order given, each waited for while
// those before it are held; all are given back after 1.5 s for each of them.
func (j *redisson) lockAll(ctx context.Context, keys ...string) {
	j.t.Helper()
	for ctx.Err() == nil {
		end := time.Now().Add(time.Duration(len(keys)) * 1500 * time.Millisecond)
		had := 0
		for had < len(keys) && j.lock(keys[had], time.Until(end)) {
			had++
		}
		if had == len(keys) {
			return
		}
		j.unlockAll(keys[:had]...)
	}
}

func (j *redisson) unlockAll(keys ...string) {
	for _, key := range keys {
		j.unlock(key)
	}
}

// A MultiLock of ours and one of Redisson, which take the same keys in opposite orders.
func TestMultiLock_BesideRedissonsInAnotherOrder(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"one each": 1, "three each": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				const lasts = 10 * time.Second
				ctx, stop := context.WithTimeout(t.Context(), lasts)
				defer stop()
				locks := b.locks()
				ours := callers(t, ctx, locks.MultiLock("a", "b"), n, 2*time.Millisecond)
				theirs := &turns{}
				var all sync.WaitGroup
				for i := range n {
					java := b.redisson(t, javaHolder+string(rune('0'+i)))
					all.Go(func() {
						for ctx.Err() == nil {
							start := time.Now()
							java.lockAll(ctx, "b", "a")
							theirs.note(time.Since(start))
							<-time.NewTimer(2 * time.Millisecond).C
							java.unlockAll("b", "a")
						}
					})
				}
				all.Wait()
				stop()
				t.Logf("ours: %d turns, %s at most; theirs: %d turns, %s at most",
					ours.taken.Load(), ours.most(), theirs.taken.Load(), theirs.most())
				for side, got := range map[string]*turns{"ours": ours, "theirs": theirs} {
					if got.taken.Load() < 20*int64(lasts/time.Second) || got.most() > time.Second {
						t.Errorf("%s: %d turns in %s, waits of up to %s", side, got.taken.Load(), lasts, got.most())
					}
				}
			})
		})
	}
}

// The same on a real server, where only a fight that lasts is told from a slow machine.
func TestMultiLock_BesideRedissonsOnAServer(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks := b.locks(patient)
	java := b.redisson(t, javaHolder)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	const rounds = 100
	var all sync.WaitGroup
	start := time.Now()
	all.Go(func() {
		for range rounds {
			java.lockAll(ctx, "b", "a")
			java.unlockAll("b", "a")
		}
	})
	all.Go(func() {
		for range rounds {
			if err := locks.MultiLock("a", "b").Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if took := time.Since(start); took > 30*time.Second { // a second for each turn, where they fight
		t.Errorf("%d turns each took %s", rounds, took)
	}
	b.wantGone("a", "b")
}

// MultiLocks of several processes whose keys overlap in part, taken in one script or one
// by one.
func TestMultiLock_PartlyOverlappingInSeveralProcesses(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]bool{"one slot": false, "across slots": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				counts := make(map[string]*turns)
				for client := range 3 {
					locks := b.locks()
					if apart {
						core.PutKeysApart(locks)
					}
					for _, names := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
						counts[names[0]+names[1]+string(rune('0'+client))] = callers(t, ctx, locks.MultiLock(names...), 2, 2*time.Millisecond)
					}
				}
				<-ctx.Done()
				for name, got := range counts {
					t.Logf("%s: %d turns, %s at most", name, got.taken.Load(), got.most())
					if got.taken.Load() < 20 || got.most() > 3*time.Second {
						t.Errorf("%s: %d turns, waits of up to %s", name, got.taken.Load(), got.most())
					}
				}
			})
		})
	}
}
