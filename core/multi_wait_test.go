package core_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// bothWays runs a test of time with keys that one script can take, and with keys that
// are in different slots.
func bothWays(t *testing.T, body func(t *testing.T, b *bed, set func(*core.Client) *core.Client)) {
	t.Helper()
	for name, apart := range map[string]bool{"one slot": false, "across slots": true} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			body(t, b, func(locks *core.Client) *core.Client {
				if apart {
					core.PutKeysApart(locks)
				}
				return locks
			})
		})
	}
}

// The wait for one key, however long, takes nothing from the time that Redis has for
// the others, and says nothing of it to other callers.
func TestMultiLock_LongWaitForOneKeyThenTheNext(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bed, set func(*core.Client) *core.Client) {
		for _, opts := range [][]core.AcquireOption{nil, {core.WaitTime(3 * time.Second)}, {core.LeaseTime(200 * time.Millisecond)}} {
			locks, proxy := b.behindProxy()
			set(locks)
			proxy.DelayReply(scripts, 60*time.Millisecond) // so that no command has a connection to itself
			b.take("a", stranger, 1500*time.Millisecond)
			start := time.Now()
			got := acquiring(t.Context(), locks.MultiLock("a", "b"), opts...)
			pass(100 * time.Millisecond)
			other := make(chan error, 1)
			go func() {
				other <- locks.Lock("a").Do(t.Context(), func(context.Context) error { return nil })
			}()
			o := <-got
			if took := time.Since(start); o.err != nil || took > 10*time.Second { // a slow Redis may need several attempts
				t.Errorf("got %v after %s", o.err, took)
			}
			_ = o.hold.Release(t.Context())
			wantOK(t, <-other)
		}
	})
}

// A wait that begins in the middle of a wait time ends with it.
func TestMultiLock_WaitTimeIsForAllKeys(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bed, set func(*core.Client) *core.Client) {
		locks := set(b.locks())
		_, hold := acquired(t, t.Context(), locks.Lock("b"))
		b.take("a", stranger, 600*time.Millisecond)
		start := time.Now()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(900*time.Millisecond))
		took := time.Since(start)
		wantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
		if e := notAcquired(t, err); e.Key != "b" {
			t.Errorf("got %+v, want b", e)
		}
		if took < 900*time.Millisecond || took > 901*time.Millisecond {
			t.Errorf("took %s", took)
		}
		pass(time.Millisecond)
		b.wantGone("a")
		released(t, hold)
	})
}

// A lease that is much shorter than the wait is whole when the keys are acquired.
func TestMultiLock_LeaseShorterThanTheWait(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bed, set func(*core.Client) *core.Client) {
		const lease = 200 * time.Millisecond
		locks := set(b.locks())
		for _, late := range []string{"a", "b"} {
			b.take(late, stranger, 5*time.Second)
			got := acquiring(t.Context(), locks.MultiLock("a", "b"), core.LeaseTime(lease), core.WaitTime(6*time.Second))
			o := <-got
			must(t, o.err)
			wantAlive(t, o.ctx)
			if left := o.hold.Remaining(); left < lease-10*time.Millisecond {
				t.Errorf("%s was late: %s of the lease are left", late, left)
			}
			b.wantTTL("a", lease-10*time.Millisecond, lease)
			b.wantTTL("b", lease-10*time.Millisecond, lease)
			released(t, o.hold)
		}
	})
}

// Who waits for several keys holds none of them, and costs Redis no more than who waits
// for one.
func TestMultiLock_HoldsNothingWhileItWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		b.warm(locks)
		b.take("b", stranger, 10*time.Second)
		before := sent.Hits()
		got := acquiring(t.Context(), locks.MultiLock("a", "b", "c"))
		for range 90 {
			pass(100 * time.Millisecond)
			b.wantGone("a", "c")
		}
		if n := sent.Hits() - before; n > 20 { // polls of 750 ms to a second
			t.Errorf("%d scripts in 9 s", n)
		}
		start := time.Now()
		b.free("b")
		o := <-got
		must(t, o.err)
		wantSoon(t, "woken after %s", start, time.Millisecond)
		released(t, o.hold)
	})
}

// The one attempt without a wait time is one round trip, refused or not.
func TestMultiLock_NoWaitIsOneScript(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		b.warm(locks)
		released(t, second(acquired(t, t.Context(), locks.MultiLock("a", "b"))))
		b.take("b", stranger, time.Hour)
		before := sent.Hits()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		wantSame(t, "scripts", sent.Hits()-before, 1)
	})
}

// turns counts what callers get who take a lock again and again.
type turns struct {
	taken   atomic.Int64
	longest atomic.Int64 // wait, in nanoseconds
}

func (n *turns) note(waited time.Duration) {
	n.taken.Add(1)
	for {
		most := n.longest.Load()
		if int64(waited) <= most || n.longest.CompareAndSwap(most, int64(waited)) {
			return
		}
	}
}

// most is the longest wait.
func (n *turns) most() time.Duration { return time.Duration(n.longest.Load()) }

// callers have n goroutines take a lock again and again, each time for work, until ctx
// ends. They have all left when the test ends.
func callers(t *testing.T, ctx context.Context, lock core.Lock, n int, work time.Duration) *turns {
	t.Helper()
	counted := &turns{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				err := lock.Do(ctx, func(context.Context) error {
					counted.note(time.Since(start))
					<-time.NewTimer(work).C
					return nil
				})
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("caller: %v", err)
					}
					return // one that fails at once would fail for ever, at one instant of a bubble
				}
			}
		})
	}
	t.Cleanup(all.Wait)
	return counted
}

// A waiter for {a, b} with b taken stands in nobody's way at a.
func TestMultiLock_WaiterLetsCallersOfFreeKeysGo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		locks := b.locks()
		b.take("b", stranger, time.Hour)
		alone := callers(t, ctx, locks.Lock("a"), 4, time.Millisecond)
		pass(3 * time.Second)
		before, longest := alone.taken.Load(), alone.most()
		acquiring(ctx, locks.MultiLock("a", "b"))
		pass(3 * time.Second)
		if beside := alone.taken.Load() - before; beside < before*9/10 {
			t.Errorf("%d turns beside the waiter, %d without it", beside, before)
		}
		if alone.most() > longest+20*time.Millisecond {
			t.Errorf("waits of up to %s beside the waiter, %s without it", alone.most(), longest)
		}
	})
}

// A waiter for several keys keeps its place among the callers of one client.
func TestMultiLock_KeepsItsPlaceInLine(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("b"))
		var order []string
		var all sync.WaitGroup
		queue := func(name string, lock core.Lock) {
			all.Go(func() {
				err := lock.Do(t.Context(), func(context.Context) error {
					order = append(order, name)
					pass(time.Millisecond) // so that both keys of the one before are free
					return nil
				})
				wantOK(t, err)
			})
			pass(time.Millisecond)
		}
		queue("first", locks.Lock("b"))
		queue("both", locks.MultiLock("a", "b"))
		queue("second", locks.Lock("b"))
		queue("all", locks.MultiLock("a", "b", "c"))
		queue("third", locks.Lock("b"))
		released(t, hold)
		all.Wait()
		if want := []string{"first", "both", "second", "all", "third"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}

// A waiter that goes over to another queue was let in already, and comes before those who
// came later.
func TestMultiLock_MovesToAFullLine(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bed, set func(*core.Client) *core.Client) {
		locks := set(b.locks(core.WithMaxWaitersPerKey(2)))
		b.take("a", stranger, time.Hour)
		b.take("b", stranger, time.Hour)
		both := acquiring(t.Context(), locks.MultiLock("a", "b"))
		pass(time.Millisecond)
		var singles []<-chan outcome
		for range 2 {
			singles = append(singles, acquiring(t.Context(), locks.Lock("b")))
			pass(time.Millisecond)
		}
		b.free("a")
		pass(10 * time.Millisecond)
		b.wantGone("a")
		wantSame(t, "callers that wait", locks.Stats().Waiters, 3)
		b.free("b")
		for i, got := range append([]<-chan outcome{both}, singles...) {
			o := <-got
			if o.err != nil {
				t.Fatalf("caller %d: %v", i, o.err)
			}
			released(t, o.hold)
		}
		b.wantGone("a", "b")
	})
}

// A caller that leaves in the middle leaves nothing behind, in whatever queue it stands.
func TestMultiLock_CancelledAfterAMove(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bed, set func(*core.Client) *core.Client) {
		locks := set(b.locks())
		b.take("a", stranger, time.Hour)
		b.take("b", stranger, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		got := acquiring(ctx, locks.MultiLock("a", "b"))
		pass(time.Millisecond)
		b.free("a")
		pass(time.Millisecond)
		next := acquiring(t.Context(), locks.Lock("b"))
		pass(time.Millisecond)
		cancel()
		wantErr(t, (<-got).err, core.ErrNotAcquired, context.Canceled)
		b.free("b")
		o := <-next
		must(t, o.err)
		released(t, o.hold)
		pass(time.Millisecond)
		wantSame(t, "stats", locks.Stats(), core.Stats{})
		b.wantGone("a", "b")
	})
}
