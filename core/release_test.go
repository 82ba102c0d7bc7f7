package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// wayOut is a way to end a hold.
type wayOut struct {
	script string
	waiter bool // a waiter of the same client exists
	do     func(h *core.Hold) error
}

var waysOut = map[string]wayOut{
	"release":             {"release", false, func(h *core.Hold) error { return h.Release(context.Background()) }},
	"release to a waiter": {"handoff", true, func(h *core.Hold) error { return h.Release(context.Background()) }},
	"leave":               {"handoff", false, func(h *core.Hold) error { return h.Leave(context.Background(), time.Second) }},
}

// eachEnd ends a hold of "k" in all ways. A client behind a proxy holds it for a minute.
func eachEnd(t *testing.T, body func(t *testing.T, b *locktest.Redis, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold)) {
	t.Helper()
	for name, e := range waysOut {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(locktest.Patient)
			core.LetRunsLast(locks)
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			var waits <-chan locktest.Outcome
			if e.waiter {
				waits = locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
				locktest.AwaitWaiters(t, locks, 1)
			}
			body(t, b, proxy, e, hold)
			cancel()
			if waits != nil {
				if o := <-waits; o.Hold != nil {
					locktest.MustRelease(t, o.Hold)
				}
			}
		})
	}
}

// begin ends the hold in another goroutine.
func (e wayOut) begin(hold *core.Hold) <-chan error {
	done := locktest.Go(func() error { return e.do(hold) })
	return done
}

// Redis does not execute a command that it refuses. If the lock is gone when the command is sent again, the lock was
// lost, not released.
func TestRefused_LostBeforeTheResend(t *testing.T) {
	t.Parallel()
	for _, says := range locktest.Passing() {
		for _, stolen := range []bool{true, false} {
			t.Run(fmt.Sprint(says, " stolen ", stolen), func(t *testing.T) {
				t.Parallel()
				eachEnd(t, func(t *testing.T, b *locktest.Redis, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold) {
					locktest.Must(t, b.Del(t.Context(), "k").Err())
					if stolen {
						b.Take("k", locktest.Stranger, time.Hour)
					}
					refused := proxy.AnswerError(locktest.Scripts, says)
					done := e.begin(hold)
					locktest.Pass(100 * time.Millisecond)
					if refused.Hits() < 2 {
						t.Fatal("the command was not sent again: nothing is tested")
					}
					attempts := proxy.HoldRequest(locktest.ScriptOn(t, "acquire", "k")) // holds the attempts of the waiter
					refused.Remove()
					locktest.WantErr(t, <-done, core.ErrLost)
					if stolen {
						b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
					} else {
						b.WantGone("k")
					}
					attempts.Remove()
				})
			})
		}
	}
}

// A command without an answer may have ended the hold, although the commands before and after it were refused.
func TestRefused_OneReplyLost(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, b *locktest.Redis, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold) {
		refused := proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
		done := e.begin(hold)
		locktest.Pass(50 * time.Millisecond)
		lost := proxy.DropReply(faultproxy.Once(locktest.ScriptOn(t, e.script, "k")))
		attempts := proxy.HoldRequest(locktest.ScriptOn(t, "acquire", "k")) // holds the attempts of the waiter
		refused.Remove()
		<-lost.Hit()
		refused = proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
		locktest.Pass(50 * time.Millisecond)
		b.Take("k", locktest.Stranger, time.Hour)
		refused.Remove()
		if err := <-done; e.script == "handoff" && !e.waiter {
			locktest.WantErr(t, err, core.ErrLost) // the marker disappeared before its end
		} else {
			locktest.Must(t, err)
		}
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		attempts.Remove()
	})
}

// The time in which Redis refuses a hand-off does not shorten the lease of the next holder.
func TestRefused_HandOffGivesTheWholeLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease, busy = 800 * time.Millisecond, 500 * time.Millisecond
		locks, proxy := b.BehindAProxy(locktest.Patient)
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		locktest.AwaitWaiters(t, locks, 1)
		refused := proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
		time.AfterFunc(busy, refused.Remove)
		locktest.MustRelease(t, hold)
		o := locktest.Got(t, next)
		b.WantCount(o.Hold, "1")
		if left := o.Hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s of a lease of %s are left, want at least nine tenths", left, lease)
		}
		locktest.MustRelease(t, o.Hold)
	})
}

// reenter re-enters a lock n times.
func reenter(t *testing.T, ctx context.Context, lock core.Lock, n int) (inner []*core.Hold) {
	t.Helper()
	for range n {
		_, hold := locktest.MustAcquire(t, ctx, lock)
		inner = append(inner, hold)
	}
	return inner
}

// releaseSlowly releases inner holds one after the other, which keeps other operations on the hold waiting for 700 ms.
// Each release is answered in time. Then it calls over.
func releaseSlowly(t *testing.T, proxy *faultproxy.Proxy, inner []*core.Hold, over func()) {
	t.Helper()
	slow := proxy.DelayReply(locktest.ScriptOn(t, "sethold", "k"), 150*time.Millisecond)
	for _, hold := range inner {
		go func() { _ = hold.Release(context.Background()) }()
	}
	synctest.Wait() // all releases wait in order
	time.AfterFunc(700*time.Millisecond, func() { over(); slow.Remove() })
}

// The time in which an operation waits for slow operations before it does not count for its time limit.
func TestRelease_BehindASlowCommandHasItsFullTime(t *testing.T) {
	t.Parallel()
	const slow, busy = 700 * time.Millisecond, 500 * time.Millisecond
	for name, do := range map[string]func(h *core.Hold) error{
		"release": func(h *core.Hold) error { return h.Release(context.Background()) },
		"refresh": func(h *core.Hold) error { return h.Refresh(context.Background(), time.Minute) },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy() // with a backend timeout of a second
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
			inner := reenter(t, ctx, locks.Lock("k"), 5)
			start := time.Now()
			releaseSlowly(t, proxy, inner, func() {
				time.AfterFunc(busy, proxy.AnswerError(locktest.Scripts, locktest.Passing()[0]).Remove)
			})
			locktest.Must(t, do(hold))
			if took := time.Since(start); took < slow+busy {
				t.Errorf("took %s: nothing is tested", took)
			}
		})
	}
}

// The lease of the next holder counts from the hand-off, however long the release has waited for its turn.
func TestRelease_BehindASlowCommandGivesTheWholeLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease = 800 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
		inner := reenter(t, ctx, locks.Lock("k"), 5)
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		locktest.AwaitWaiters(t, locks, 1)
		releaseSlowly(t, proxy, inner, func() {})
		locktest.MustRelease(t, hold)
		o := locktest.Got(t, next)
		b.WantCount(o.Hold, "1")
		if left := o.Hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s of a lease of %s are left, want at least nine tenths", left, lease)
		}
		locktest.MustRelease(t, o.Hold)
	})
}

// newRestricted returns a lock client of an ACL user whose rights the test changes.
func newRestricted(b *locktest.Redis) (locks *core.Client, allow func(rules ...any)) {
	b.T.Helper()
	allow = func(rules ...any) {
		b.T.Helper()
		locktest.Must(b.T, b.Do(b.T.Context(), append([]any{"acl", "setuser", "app"}, rules...)...).Err())
	}
	allow("on", ">pw", "~*", "&*", "+@all")
	opts := *b.Client.Options()
	opts.Username, opts.Password = "app", "pw"
	rdb := redis.NewClient(&opts)
	b.T.Cleanup(func() { _ = rdb.Close() })
	return locktest.NewClient(b.T, rdb, locktest.Patient), allow
}

// A user without the right to set a TTL gets no lock and leaves no lock without a lease behind.
func TestAcquire_TTLForbidden(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, allow := newRestricted(b)
	allow("-pexpire")
	for _, lock := range []core.Lock{locks.Lock("k"), locks.FencedLock("f"), locks.SpinLock("s"), locks.MultiLock("a", "b")} {
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantErr(t, err, core.ErrUnavailable)
		}
	}
	b.WantGone("k", "f", "s", "a", "b")
}

// If the holder loses the right to set a TTL, the lock is not handed off but freed.
func TestRelease_TTLForbidden(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, allow := newRestricted(b)
	core.LetRunsLast(locks)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.FencedLock("k"), core.LeaseTime(time.Minute))
	next := locktest.GoAcquire(t.Context(), locks.FencedLock("k"))
	locktest.AwaitWaiters(t, locks, 1)
	allow("-pexpire")
	locktest.MustRelease(t, hold)
	locktest.WantErr(t, (<-next).Err, core.ErrUnavailable)
	b.WantGone("k")
}

// If the holder loses the right to remove a field, no script stops halfway: the lock is freed instead of handed off, and
// after Leave it stays for its time with one holder.
func TestRelease_RemovalForbidden(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithHolders() {
		if kind.Nodes > 1 {
			continue
		}
		locktest.Parallel(t, kind.Name, func(t *testing.T) {
			b := locktest.Real(t)
			locks, allow := newRestricted(b)
			core.LetRunsLast(locks)
			lockOf := func(name string) core.Lock { return kind.Lock([]*core.Client{locks}, name) }
			terms := core.LeaseTime(time.Minute)
			_, hold := locktest.MustAcquire(t, t.Context(), lockOf("k"), terms)
			_, left := locktest.MustAcquire(t, t.Context(), lockOf("left"), terms)
			next := locktest.GoAcquire(t.Context(), kind.Rival([]*core.Client{locks}, "k"), terms)
			locktest.AwaitWaiters(t, locks, 1)
			fields := b.HLen(t.Context(), "left").Val()
			allow("-hdel")
			if kind.HasPermits {
				allow("-zrem")
			}
			leaves := left.Leave(t.Context(), time.Hour)
			locktest.WantSame(t, "fields after Leave", b.HLen(t.Context(), "left").Val(), fields)
			_, _, err := kind.Rival([]*core.Client{b.Locks()}, "left").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			released := hold.Release(t.Context())
			allow("+hdel", "+zrem")
			if kind.Name == "group" || kind.Name == "permit" { // they cannot be freed without the command
				locktest.WantErr(t, released, core.ErrUnavailable)
				return
			}
			locktest.WantOK(t, leaves)
			locktest.WantOK(t, released)
			got := locktest.Got(t, next)
			locktest.WantOK(t, got.Err)
			locktest.MustRelease(t, got.Hold)
		})
	}
}
