package outages_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// abandonAcquire starts an acquire that a fault holds until its caller gives up.
func abandonAcquire(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *faultproxy.Rule {
	t.Helper()
	rule := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	locktest.WantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
	<-rule.Hit()
	return rule
}

// An abandoned acquire lands just before a caller of the same client attempts with WaitTime(0). The caller gets the
// lock as soon as the ghost is cleared up, because no other caller has the lock.
func TestGhost_IsNotAHolderForWaitZero(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(locktest.Patient)
		ghost := abandonAcquire(t, locks, proxy)
		clearing := proxy.HoldRequest(locktest.ScriptOn(t, "clear", "k"))
		locktest.Land(t, ghost)
		refusal := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		result := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0))
		<-refusal.Hit()
		locktest.Land(t, refusal)
		clearing.Release()
		locktest.MustRelease(t, locktest.Got(t, result).Hold)
		b.WantFreed("k")
	})
}

// An abandoned acquire lands long after its connection was closed. The client finds the ghost only by asking Redis.
func TestGhost_LandsAfterItsConnectionClosed(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(100 * time.Millisecond))
		ghost := abandonAcquire(t, locks, proxy)
		other := b.Locks()
		for range 15 {
			locktest.Must(t, other.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
			locktest.Pass(100 * time.Millisecond)
		}
		ghost.Release()
		locktest.Pass(0)
		locktest.WantSame(t, "abandoned acquires that have landed", ghost.Executed(), 1)
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("k"))
		locktest.WantSoon(t, "acquired after %s", start, time.Second)
		locktest.MustRelease(t, hold)
		locktest.Pass(time.Second)
		b.WantGone("k")
	})
}

// The head of a queue is cancelled during its attempt. The next waiter gets the lock.
func TestGhost_OfTheHeadOfAQueue(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		locktest.Parallel(t, f.Name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			rule := f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithCancel(t.Context())
			head := locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			<-rule.Hit()
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			locktest.AwaitWaiters(t, locks, 2)
			cancel()
			locktest.WantErr(t, (<-head).Err, context.Canceled)
			left := time.Now()
			o := locktest.Got(r.T, next)
			locktest.WantAtMost(t, "the next waiter", time.Since(left), time.Second)
			locktest.Land(r.T, rule)
			r.WantHolder("k", o.Hold.Field())
			locktest.WantAlive(t, o.Ctx)
			locktest.MustRelease(t, o.Hold)
			r.WantFreed("k")
		})
	}
}

// A re-entry is cancelled while its command is under way. The outer hold keeps the lock, and its release frees the
// lock.
func TestGhost_OfAReentry(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		locktest.Parallel(t, f.Name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			outerCtx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			rule := f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "sethold", "k")))
			ctx, cancel := context.WithTimeout(outerCtx, 50*time.Millisecond)
			defer cancel()
			o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			locktest.WantErr(t, o.Err, context.DeadlineExceeded, core.ErrNotAcquired)
			locktest.WantAtMost(t, "re-entry", o.Took, 50*time.Millisecond)
			locktest.WithinASecond(t, "the count is 1 again", func() bool { return r.Client.HGet(t.Context(), "k", outer.Field()).Val() == "1" })
			locktest.WantAlive(t, outerCtx)
			locktest.MustRelease(t, outer)
			locktest.Land(r.T, rule)
			r.WantFreed("k")
		})
	}
}

// The reply of an acquire with WaitTime(0) is lost. The lock is then held by the abandoned attempt of the same
// caller, not by another holder.
func TestGhost_OfTheCallerIsNotAHolder(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.DropReply, locktest.DropRequest} {
		r := locktest.NewProxied(t)
		locks := r.Behind(locktest.Patient)
		f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		r.Proxy.DropRequest(faultproxy.Once(locktest.ScriptOn(t, "release", "k"))) // so that the ghost stays a little longer
		_, hold, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Minute), core.WaitTime(0))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		r.WantHolder("k", hold.Field())
		locktest.MustRelease(t, hold)
		r.WantFreed("k")
	}
}

// TestGhost_DoesNotAppearAfterASilence stops Redis while an acquire is under way, gives the acquire up, and continues
// Redis. The abandoned command lands late, before or after a newer acquisition was granted and released. The lock
// does not appear again.
func TestGhost_DoesNotAppearAfterASilence(t *testing.T) {
	t.Parallel()
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	server := redisserver.Start(t)
	direct := server.Client()
	for round := range rounds {
		// Two clients with separate pools, so that connections queue unevenly.
		a, b := locktest.MustNew(t, server.Client(), locktest.Patient), locktest.MustNew(t, server.Client(), locktest.Patient)
		locktest.Warm(t, a, b)
		key := fmt.Sprintf("stopped:%d", round)
		server.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, _, err := a.Lock(key).Acquire(ctx, core.LeaseTime(30*time.Second))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("round %d: acquire on a stopped server: %v", round, err)
		}
		newer := make(chan error, 1)
		go func() {
			newer <- b.Lock(key).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(30*time.Second))
		}()
		server.Continue()
		if err := <-newer; err != nil {
			t.Fatalf("round %d: acquire after the stop: %v", round, err)
		}
		locktest.WithinASecond(t, fmt.Sprintf("round %d: no key left", round), func() bool {
			return direct.Exists(context.Background(), key).Val() == 0
		})
		locktest.MustClose(t, a)
		locktest.MustClose(t, b)
	}
}

// A command may land long after its connection was closed. If it lands within two minutes after the end of the lease
// that it asked for, the client clears up.
func TestGhost_IsClearedUpHoweverLateItLands(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{1500 * time.Millisecond, 2 * time.Minute} {
		locktest.ParallelBubble(t, after.String(), func(t *testing.T, b *locktest.Redis) {
			const lease = 10 * time.Second
			locks, proxy := b.BehindAProxy()
			stuck := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(lease))
			locktest.WantErr(t, err, context.DeadlineExceeded)
			locktest.Pass(after)
			behind := proxy.DropRequest(faultproxy.Once(locktest.Scripts)) // this command would clear it up at once
			stuck.Release()
			synctest.Wait()
			behind.Remove()
			if b.Exists(t.Context(), "k").Val() != 1 {
				t.Fatal("the acquire has not landed: nothing is tested")
			}
			locktest.Pass(1100 * time.Millisecond) // the client asks every second
			b.WantGone("k")
		})
	}
}
