package kinds_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A nonReentrant is a lock that its holder cannot acquire again, and the reentrant lock of the same kind.
type nonReentrant struct {
	lock, reentrant func(locks *core.Client, name string) core.Lock
	javaLocks       func(t *testing.T, b *locktest.Redis) // takes and frees the lock "k" as Redisson does
}

func eachNonReentrant(t *testing.T, body func(t *testing.T, b *locktest.Redis, n nonReentrant)) {
	t.Helper()
	for name, n := range map[string]nonReentrant{
		"plain": {(*core.Client).NonReentrantLock, (*core.Client).Lock, func(t *testing.T, b *locktest.Redis) {
			t.Helper()
			thread := b.NewRedisson(t, locktest.RedissonField+"1")
			locktest.WantSame(t, "Redisson has the lock", thread.Lock("k", time.Minute), true)
			thread.Unlock("k")
		}},
		"fair": {(*core.Client).NonReentrantFairLock, (*core.Client).FairLock, func(t *testing.T, b *locktest.Redis) {
			t.Helper()
			thread := b.NewFairThread("k")
			locktest.WantOK(t, thread.Lock(t.Context()))
			thread.Unlock(t)
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) { body(t, b, n) })
	}
}

// An acquisition with a context that carries the lock fails at once, sends nothing and changes nothing.
func TestNonReentrant_HolderIsRefused(t *testing.T) {
	t.Parallel()
	eachNonReentrant(t, func(t *testing.T, b *locktest.Redis, n nonReentrant) {
		type requestKey struct{}
		locks, sent := b.Counted()
		locks.ForAdapters().FindThrough(requestKey{})
		ctx, hold := locktest.MustAcquire(t, t.Context(), n.lock(locks, "k"))
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		request := context.WithValue(t.Context(), requestKey{}, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		wantRefused := func(what string, ctx context.Context) {
			t.Helper()
			before, start := sent.Hits(), time.Now()
			for _, opts := range [][]core.AcquireOption{nil, {core.WaitTime(0)}, {core.WaitTime(time.Second)}} {
				o := <-locktest.GoAcquire(ctx, n.lock(locks, "k"), opts...)
				if o.Hold != nil {
					t.Errorf("%s: the lock was acquired twice", what)
				}
				locktest.WantOutcome(t, what, o.Err, core.ErrInvalid)
			}
			locktest.WantSoon(t, what+" was refused after %s", start, 0)
			locktest.WantSame(t, what+": scripts", sent.Hits()-before, 0)
			b.WantCount(hold, "1")
			b.WantQueue("k")
		}
		wantRefused("the context of the hold", ctx)
		wantRefused("a derived context", derived)
		wantRefused("a context that leads to the request", request)
		ctx, hold = hold.Handover()
		wantRefused("the context after a handover", ctx)
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}

// Other contexts of the client, other clients and Redisson wait for the holder. Each of them gets the lock after one
// release.
func TestNonReentrant_OthersWait(t *testing.T) {
	t.Parallel()
	eachNonReentrant(t, func(t *testing.T, b *locktest.Redis, n nonReentrant) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), n.lock(locks, "k"))
		turn := func(ctx context.Context, locks *core.Client) <-chan error {
			return locktest.Go(func() error {
				return n.lock(locks, "k").Do(ctx, func(context.Context) error { return nil })
			})
		}
		others := []<-chan error{
			turn(t.Context(), locks), turn(core.Detach(ctx), locks), turn(context.WithoutCancel(ctx), b.Locks()),
			locktest.Go(func() error { n.javaLocks(t, b); return nil }),
		}
		locktest.Pass(5 * time.Second)
		for i, done := range others {
			select {
			case err := <-done:
				t.Errorf("caller %d did not wait: %v", i, err)
			default:
			}
		}
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
		for _, done := range others {
			locktest.WantOK(t, <-done)
		}
		locktest.Pass(time.Second)
		b.WantGone("k")
	})
}

// A reentrant lock of the same name is the same lock. Only the acquisition that comes second decides.
func TestNonReentrant_BesideLock(t *testing.T) {
	t.Parallel()
	eachNonReentrant(t, func(t *testing.T, b *locktest.Redis, n nonReentrant) {
		locks := b.Locks()
		ctx, outer := locktest.MustAcquire(t, t.Context(), n.reentrant(locks, "k"))
		_, _, err := n.lock(locks, "k").Acquire(ctx)
		locktest.WantErr(t, err, core.ErrInvalid)
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("k")

		ctx, outer = locktest.MustAcquire(t, t.Context(), n.lock(locks, "k"))
		again, inner := locktest.MustAcquire(t, ctx, n.reentrant(locks, "k"))
		b.WantCount(outer, "2")
		_, _, err = n.lock(locks, "k").Acquire(again)
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.MustRelease(t, inner)
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}

// After its release or its loss a context carries the lock no longer. An acquisition with it is not refused.
func TestNonReentrant_AfterTheEnd(t *testing.T) {
	t.Parallel()
	eachNonReentrant(t, func(t *testing.T, b *locktest.Redis, n nonReentrant) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), n.lock(locks, "k"))
		locktest.MustRelease(t, hold)
		_, hold = locktest.MustAcquire(t, context.WithoutCancel(ctx), n.lock(locks, "k"))
		locktest.MustRelease(t, hold)

		ctx, _ = locktest.MustAcquire(t, t.Context(), n.lock(locks, "k"), core.LeaseTime(time.Second))
		locktest.Pass(2 * time.Second)
		_, hold = locktest.MustAcquire(t, context.WithoutCancel(ctx), n.lock(locks, "k"))
		locktest.MustRelease(t, hold)
	})
}
