package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// holding starts a MultiLock of "a" and "b" that holds b while it waits for a, which a stranger has. It has waited
// for b for more than a second before.
func holding(t *testing.T, b *locktest.Redis, locks *core.Client, taken time.Duration, opts ...core.AcquireOption) <-chan locktest.Outcome {
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
func TestMultiLock_KeyLostWhileOthersAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		locktest.ParallelBubble(t, map[bool]string{true: "taken", false: "free again"}[taken], func(t *testing.T, b *locktest.Redis) {
			locks, other := b.Locks(), b.Locks()
			got := holding(t, b, locks, 50*time.Millisecond, core.LeaseTime(400*time.Millisecond), core.WaitTime(3*time.Second))
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
func TestMultiLock_RenewedWhileOthersAreWaitedFor(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease = 100 * time.Millisecond
		locks := b.Locks(core.WithWatchdog(lease))
		got := holding(t, b, locks, 140*time.Millisecond)
		first := b.HGetAll(t.Context(), "b").Val()
		for range 12 {
			locktest.Pass(10 * time.Millisecond)
			b.WantHolders("b", first)
			b.WantTTL("b", lease/2, lease)
		}
		o := <-got
		locktest.Must(t, o.Err)
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
			t.Fatalf("%d keys are taken: nothing is tested", held)
		}
		proxy.BlackHole(true)
		time.AfterFunc(5*timeout, func() { proxy.BlackHole(false) }) // long enough, also if the test fails
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
