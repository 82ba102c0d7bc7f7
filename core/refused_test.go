package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

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
	done := make(chan error, 1)
	go func() { done <- e.do(hold) }()
	return done
}

// Redis does not execute a command that it refuses. If the lock is gone when the command is sent again, the lock was
// lost, not released.
func TestRefused_LostInBetweenIsALoss(t *testing.T) {
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

// If one of several commands has no answer, it may have ended the hold, although commands before and after it were
// refused.
func TestRefused_BesideALostReplyIsDone(t *testing.T) {
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

// The time of a refused hand-off does not shorten the lease of the next holder.
func TestRefused_HandoffGivesTheWholeLease(t *testing.T) {
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
		o := <-next
		locktest.Must(t, o.Err)
		b.WantCount(o.Hold, "1")
		if left := o.Hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s are left of a lease of %s", left, lease)
		}
		locktest.MustRelease(t, o.Hold)
	})
}
