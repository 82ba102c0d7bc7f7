package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

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

// A long wait for one key does not shorten the time that Redis has for the other keys, and does not look like an
// outage to other callers.
func TestMultiLock_LongWaitForOneKeyThenTheNext(t *testing.T) {
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
			t.Errorf("took %s", took)
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
			o := <-got
			locktest.Must(t, o.Err)
			locktest.WantAlive(t, o.Ctx)
			if left := o.Hold.Remaining(); left < lease-10*time.Millisecond {
				t.Errorf("%s was late: %s of the lease are left", late, left)
			}
			b.WantTTL("a", lease-10*time.Millisecond, lease)
			b.WantTTL("b", lease-10*time.Millisecond, lease)
			locktest.MustRelease(t, o.Hold)
		}
	})
}

// A waiter for several keys keeps its place in the queue of its client.
func TestMultiLock_KeepsItsPlaceInLine(t *testing.T) {
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

// A waiter that moves to the queue of another key was admitted already. It comes before later callers.
func TestMultiLock_MovesToAFullLine(t *testing.T) {
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

// A caller that leaves in the middle leaves nothing behind, in whichever queue it waits.
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
		o := <-next
		locktest.Must(t, o.Err)
		locktest.MustRelease(t, o.Hold)
		locktest.Pass(time.Millisecond)
		locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
		b.WantGone("a", "b")
	})
}
