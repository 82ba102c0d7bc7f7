package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// holdBAndWaitForA starts an acquisition of the keys a and b. It has acquired b after a wait of more than a second, and
// now waits for a, which a stranger holds.
func holdBAndWaitForA(t *testing.T, b *locktest.Redis, locks *core.Client, taken time.Duration, opts ...core.AcquireOption) <-chan locktest.Outcome {
	t.Helper()
	core.PutKeysApart(locks)
	b.Take("a", locktest.Stranger, 1100*time.Millisecond)
	b.Take("b", locktest.Stranger, 1200*time.Millisecond)
	got := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"), opts...)
	locktest.Pass(1150 * time.Millisecond)
	b.Take("a", locktest.Stranger, 50*time.Millisecond+taken)
	locktest.Pass(60 * time.Millisecond)
	if b.Exists(t.Context(), "b").Val() != 1 || b.HExists(t.Context(), "b", locktest.Stranger).Val() {
		t.Fatal("b is not taken: nothing is tested")
	}
	return got
}

// A key is lost while the caller waits for another key. The acquisition does not succeed, because another client may
// have the lost key.
func TestMultiLock_KeyLostDuringTheWait(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		locktest.ParallelBubble(t, map[bool]string{true: "taken", false: "free again"}[taken], func(t *testing.T, b *locktest.Redis) {
			locks, other := b.Locks(), b.Locks()
			got := holdBAndWaitForA(t, b, locks, 50*time.Millisecond, core.LeaseTime(400*time.Millisecond), core.WaitTime(3*time.Second))
			want := map[string]string{}
			b.Del(t.Context(), "b")
			if taken {
				_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("b"), core.LeaseTime(time.Minute))
				want[hold.Field()] = "1"
			}
			o := <-got
			switch {
			case !taken:
				locktest.Must(t, o.Err)
				locktest.WantAlive(t, o.Ctx)
				b.WantCount(o.Hold, "1")
				if b.Exists(t.Context(), "b").Val() != 1 {
					t.Error("b is not held")
				}
			default:
				locktest.WantErr(t, o.Err, core.ErrNotAcquired)
				b.WantHolders("b", want)
				b.WantGone("a")
			}
		})
	}
}

// The watchdog renews the keys that were acquired first, while the caller waits for another key and after that.
func TestMultiLock_RenewedDuringTheWait(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease = 100 * time.Millisecond
		locks := b.Locks(core.WithWatchdog(lease))
		got := holdBAndWaitForA(t, b, locks, 140*time.Millisecond)
		first := b.HGetAll(t.Context(), "b").Val()
		for range 12 {
			locktest.Pass(10 * time.Millisecond)
			b.WantHolders("b", first)
			b.WantTTL("b", lease/2, lease)
		}
		o := locktest.Got(t, got)
		for range 5 {
			locktest.Pass(lease / 2)
			locktest.WantAlive(t, o.Ctx)
			b.WantHolders("b", first)
			b.WantTTL("a", lease/2, lease)
			b.WantTTL("b", lease/2, lease)
		}
		locktest.MustRelease(t, o.Hold)
		locktest.Pass(2 * lease)
		b.WantGone("a", "b")
	})
}

// twenty returns the names of a big MultiLock.
func twenty() (names []string) {
	for i := range 20 {
		names = append(names, fmt.Sprintf("k%02d", i))
	}
	return names
}

// The keys of a MultiLock are given back concurrently. A Redis that does not answer costs the backend timeout once,
// not once per key.
func TestMultiLock_BlackHole(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	locktest.ParallelBubble(t, "release", func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(twenty()...), core.LeaseTime(time.Hour))
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrUnavailable)
		locktest.WantSoon(t, "returned after %s", start, 2*timeout)
		proxy.BlackHole(false)
		locktest.Pass(3 * time.Second) // the client asks every second
		b.WantGone(hold.Keys()...)
	})
	locktest.ParallelBubble(t, "roll-back", func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
		core.PutKeysApart(locks)
		last := "z"
		b.Take("k00", locktest.Stranger, 1100*time.Millisecond)
		b.Take(last, locktest.Stranger, 1200*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		got := locktest.GoAcquire(ctx, locks.MultiLock(append(twenty(), last)...), core.LeaseTime(time.Hour))
		locktest.Pass(1150 * time.Millisecond)
		b.Take("k00", locktest.Stranger, 1850*time.Millisecond) // its end is missed while the last key is held: k00 is taken first then
		locktest.Pass(1750 * time.Millisecond)
		b.Take(last, locktest.Stranger, time.Hour)
		for range 40 { // k00 is free soon, but may be left free for other clients first
			if locktest.Pass(10 * time.Millisecond); locks.Stats().Holds == 20 {
				break
			}
		}
		if held := locks.Stats().Holds; held != 20 {
			t.Fatalf("%d keys are taken, want 20: nothing is tested", held)
		}
		proxy.BlackHole(true)
		time.AfterFunc(5*timeout, func() { proxy.BlackHole(false) }) // long enough, even if the test fails
		start := time.Now()
		cancel()
		o := <-got
		locktest.WantSoon(t, "returned after %s", start, 2*timeout)
		if !errors.Is(o.Err, context.Canceled) || o.Hold != nil {
			t.Errorf("got %v", o.Err)
		}
		locktest.Pass(4 * time.Second)
		b.WantGone(twenty()...)
		b.WantHolders(last, map[string]string{locktest.Stranger: "1"})
	})
}

// bothWays runs a test in a bubble with keys that one script can take, and with keys in different slots.
func bothWays(t *testing.T, body func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client)) {
	t.Helper()
	for name, apart := range map[string]bool{"one slot": false, "across slots": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			body(t, b, func(locks *core.Client) *core.Client {
				if apart {
					core.PutKeysApart(locks)
				}
				return locks
			})
		})
	}
}

// A long wait for one key does not shorten the time limit of commands for the other keys, and does not count as an
// outage.
func TestMultiLock_LongWaitForOneKey(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client) {
		for _, opts := range [][]core.AcquireOption{nil, {core.WaitTime(3 * time.Second)}, {core.LeaseTime(200 * time.Millisecond)}} {
			locks, proxy := b.BehindAProxy()
			set(locks)
			proxy.DelayReply(locktest.Scripts, 60*time.Millisecond) // so that commands share connections
			b.Take("a", locktest.Stranger, 1500*time.Millisecond)
			start := time.Now()
			got := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"), opts...)
			locktest.Pass(100 * time.Millisecond)
			other := make(chan error, 1)
			go func() {
				other <- locks.Lock("a").Do(t.Context(), func(context.Context) error { return nil })
			}()
			o := <-got
			if took := time.Since(start); o.Err != nil || took > 10*time.Second { // a slow Redis may need several attempts
				t.Errorf("got %v after %s", o.Err, took)
			}
			_ = o.Hold.Release(t.Context())
			locktest.WantOK(t, <-other)
		}
	})
}

// A wait for another key that starts in the middle of the wait time ends with the wait time.
func TestMultiLock_WaitTimeIsForAllKeys(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client) {
		locks := set(b.Locks())
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("b"))
		b.Take("a", locktest.Stranger, 600*time.Millisecond)
		start := time.Now()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(900*time.Millisecond))
		took := time.Since(start)
		locktest.WantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
		if e := locktest.NotAcquired(t, err); e.Key != "b" {
			t.Errorf("got %+v, want b", e)
		}
		if took < 900*time.Millisecond || took > 901*time.Millisecond {
			t.Errorf("the wait took %s, want 900ms to 901ms", took)
		}
		locktest.Pass(time.Millisecond)
		b.WantGone("a")
		locktest.MustRelease(t, hold)
	})
}

// A lease that is much shorter than the wait is complete when all keys are acquired.
func TestMultiLock_LeaseShorterThanTheWait(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client) {
		const lease = 200 * time.Millisecond
		locks := set(b.Locks())
		for _, late := range []string{"a", "b"} {
			b.Take(late, locktest.Stranger, 5*time.Second)
			got := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"), core.LeaseTime(lease), core.WaitTime(6*time.Second))
			o := locktest.Got(t, got)
			locktest.WantAlive(t, o.Ctx)
			if left := o.Hold.Remaining(); left < lease-10*time.Millisecond {
				t.Errorf("%s was late, and only %s of the lease are left", late, left)
			}
			b.WantTTL("a", lease-10*time.Millisecond, lease)
			b.WantTTL("b", lease-10*time.Millisecond, lease)
			locktest.MustRelease(t, o.Hold)
		}
	})
}

// A waiter for several keys keeps its place in the queue of its client.
func TestMultiLock_KeepsItsPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("b"))
		var order []string
		var all sync.WaitGroup
		queue := func(name string, lock core.Lock) {
			all.Go(func() {
				err := lock.Do(t.Context(), func(context.Context) error {
					order = append(order, name)
					locktest.Pass(time.Millisecond) // so that both keys of the caller before are free
					return nil
				})
				locktest.WantOK(t, err)
			})
			locktest.Pass(time.Millisecond)
		}
		queue("first", locks.Lock("b"))
		queue("both", locks.MultiLock("a", "b"))
		queue("second", locks.Lock("b"))
		queue("all", locks.MultiLock("a", "b", "c"))
		queue("third", locks.Lock("b"))
		locktest.MustRelease(t, hold)
		all.Wait()
		if want := []string{"first", "both", "second", "all", "third"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}

// A waiter that moves to the queue of another key is not refused if that queue is full. It comes before later callers.
func TestMultiLock_MovesToAFullQueue(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client) {
		locks := set(b.Locks(core.WithMaxWaitersPerKey(2)))
		b.Take("a", locktest.Stranger, time.Hour)
		b.Take("b", locktest.Stranger, time.Hour)
		both := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"))
		locktest.Pass(time.Millisecond)
		var singles []<-chan locktest.Outcome
		for range 2 {
			singles = append(singles, locktest.GoAcquire(t.Context(), locks.Lock("b")))
			locktest.Pass(time.Millisecond)
		}
		b.Free("a")
		locktest.Pass(10 * time.Millisecond)
		b.WantGone("a")
		locktest.WantSame(t, "callers that wait", locks.Stats().Waiters, 3)
		b.Free("b")
		for i, got := range append([]<-chan locktest.Outcome{both}, singles...) {
			o := <-got
			if o.Err != nil {
				t.Fatalf("caller %d: %v", i, o.Err)
			}
			locktest.MustRelease(t, o.Hold)
		}
		b.WantGone("a", "b")
	})
}

// A caller that leaves while it waits for a key leaves nothing behind, whichever queue it waits in.
func TestMultiLock_CancelledAfterAMove(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *locktest.Redis, set func(*core.Client) *core.Client) {
		locks := set(b.Locks())
		b.Take("a", locktest.Stranger, time.Hour)
		b.Take("b", locktest.Stranger, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		got := locktest.GoAcquire(ctx, locks.MultiLock("a", "b"))
		locktest.Pass(time.Millisecond)
		b.Free("a")
		locktest.Pass(time.Millisecond)
		next := locktest.GoAcquire(t.Context(), locks.Lock("b"))
		locktest.Pass(time.Millisecond)
		cancel()
		locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired, context.Canceled)
		b.Free("b")
		locktest.MustRelease(t, locktest.Got(t, next).Hold)
		locktest.Pass(time.Millisecond)
		locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
		b.WantGone("a", "b")
	})
}

// MultiLocks of several processes have some keys in common. If keys are taken one by one, a caller holds its first key
// while it waits for the others, so the first key is rarely free.
func TestMultiLock_OverlappingKeysOfSeveralProcesses(t *testing.T) {
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
