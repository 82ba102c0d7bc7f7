package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// passes are answers that pass by themselves. None of them comes of a script that was
// executed.
var passes = []string{"BUSY a script runs", "LOADING from disk", "TRYAGAIN a slot moves"}

// wayOut is a way to end a hold.
type wayOut struct {
	script string
	waiter bool // of the same client
	do     func(h *core.Hold) error
}

var waysOut = map[string]wayOut{
	"release":             {"release", false, func(h *core.Hold) error { return h.Release(context.Background()) }},
	"release to a waiter": {"handoff", true, func(h *core.Hold) error { return h.Release(context.Background()) }},
	"leave":               {"handoff", false, func(h *core.Hold) error { return h.Leave(context.Background(), time.Second) }},
}

// eachEnd ends a hold of "k" in all ways. It is held for a minute by a client behind a proxy.
func eachEnd(t *testing.T, body func(t *testing.T, b *bed, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold)) {
	t.Helper()
	for name, e := range waysOut {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(patient)
			core.LetRunsLast(locks)
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			var waits <-chan outcome
			if e.waiter {
				waits = acquiring(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
				waiters(t, locks, 1)
			}
			body(t, b, proxy, e, hold)
			cancel()
			if waits != nil {
				if o := <-waits; o.hold != nil {
					released(t, o.hold)
				}
			}
		})
	}
}

// begin does it in another goroutine.
func (e wayOut) begin(hold *core.Hold) <-chan error {
	done := make(chan error, 1)
	go func() { done <- e.do(hold) }()
	return done
}

// What Redis has refused was not executed: that the lock is not there when the command is
// sent again is a loss, and no release.
func TestRefused_LostMeanwhileIsALoss(t *testing.T) {
	t.Parallel()
	for _, says := range passes {
		for _, stolen := range []bool{true, false} {
			t.Run(fmt.Sprint(says, " stolen ", stolen), func(t *testing.T) {
				t.Parallel()
				eachEnd(t, func(t *testing.T, b *bed, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold) {
					must(t, b.Del(t.Context(), "k").Err())
					if stolen {
						b.take("k", stranger, time.Hour)
					}
					refused := proxy.AnswerError(scripts, says)
					done := e.begin(hold)
					pass(100 * time.Millisecond)
					if refused.Hits() < 2 {
						t.Fatal("it was not sent again: nothing is tested")
					}
					attempts := proxy.HoldRequest(scriptOn(t, "acquire", "k")) // of the waiter
					refused.Remove()
					wantErr(t, <-done, core.ErrLost)
					if stolen {
						b.wantHolders("k", map[string]string{stranger: "1"})
					} else {
						b.wantGone("k")
					}
					attempts.Remove()
				})
			})
		}
	}
}

// Where one of the sends has no answer, that one may have done it, whatever was refused
// before and after it.
func TestRefused_BesideALostReplyIsDone(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, b *bed, proxy *faultproxy.Proxy, e wayOut, hold *core.Hold) {
		refused := proxy.AnswerError(scripts, passes[0])
		done := e.begin(hold)
		pass(50 * time.Millisecond)
		lost := proxy.DropReply(faultproxy.Once(scriptOn(t, e.script, "k")))
		attempts := proxy.HoldRequest(scriptOn(t, "acquire", "k")) // of the waiter
		refused.Remove()
		<-lost.Hit()
		refused = proxy.AnswerError(scripts, passes[0])
		pass(50 * time.Millisecond)
		b.take("k", stranger, time.Hour)
		refused.Remove()
		if err := <-done; e.script == "handoff" && !e.waiter {
			wantErr(t, err, core.ErrLost) // the marker was taken away within its time
		} else {
			must(t, err)
		}
		b.wantHolders("k", map[string]string{stranger: "1"})
		attempts.Remove()
	})
}

// Redis takes no new field, and the reply to what makes a marker of the old one is lost.
func TestLeave_OutOfMemoryAndReplyLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		proxy.AnswerError(scriptOn(t, "handoff", "k"), "OOM command not allowed")
		lost := proxy.DropReply(faultproxy.Once(scriptOn(t, "refresh", "k")))
		must(t, hold.Leave(t.Context(), time.Millisecond))
		if lost.Executed() != 1 {
			t.Error("no reply was lost")
		}
		b.wantGone("k")
	})
}

// What a refused hand-off cost is not taken off the lease of the next holder.
func TestRefused_HandoffGivesTheWholeLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const lease, busy = 800 * time.Millisecond, 500 * time.Millisecond
		locks, proxy := b.knowing(patient)
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		next := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		waiters(t, locks, 1)
		refused := proxy.AnswerError(scripts, passes[0])
		time.AfterFunc(busy, refused.Remove)
		released(t, hold)
		o := <-next
		must(t, o.err)
		b.wantCount(o.hold, "1")
		if left := o.hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s are left of a lease of %s", left, lease)
		}
		released(t, o.hold)
	})
}

// A refresh that Redis refuses sends no message: the next one is somebody else's, and the
// holder finds out what it is about.
func TestRefresh_RefusedExpectsNoMessage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		waiting, cancel := context.WithCancel(t.Context())
		next := acquiring(waiting, locks.Lock("k"))
		b.listeners("k", 1)
		proxy.AnswerError(scriptOn(t, "acquire", "k"), passes[0]) // the waiter does not find it out
		proxy.AnswerError(scriptOn(t, "refresh", "k"), "NOPERM no")
		wantErr(t, hold.Refresh(t.Context(), 30*time.Second), core.ErrUnavailable)
		_, err := b.locks().Lock("k").ForceRelease(t.Context())
		must(t, err)
		pass(50 * time.Millisecond) // it asks every 20 ms at most
		wantEnded(t, ctx, core.ErrLost)
		cancel()
		<-next
	})
}
