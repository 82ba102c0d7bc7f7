package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A waiter whose hand-off comes too late goes on waiting. The limit of waiters does not apply to that waiter again,
// although another caller has joined the queue since.
func TestHandOff_LateIsNotARefusal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithMaxWaitersPerKey(1), locktest.Patient)
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		first := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(50*time.Millisecond))
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Pass(time.Millisecond)
		answer := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "handoff", "k")))
		done := locktest.GoRelease(hold)
		<-answer.Hit()
		second := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		locktest.Pass(100 * time.Millisecond)
		answer.Release()
		locktest.Must(t, <-done)
		for name, got := range map[string]<-chan locktest.Outcome{"first": first, "second": second} {
			go func() {
				o := <-got
				if o.Err != nil {
					t.Errorf("%s: %v", name, o.Err)
					return
				}
				locktest.MustRelease(t, o.Hold)
			}()
		}
		locktest.Pass(time.Minute)
	})
}

func TestHandOff_IsOneScriptWithoutMessage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		sub := b.SubscribeTo(t, locktest.ChannelOf("k"))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := make(chan *core.Hold, 1)
		go func() {
			_, h, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Hour))
			locktest.WantOK(t, err)
			next <- h
		}()
		locktest.Pass(100 * time.Millisecond)
		sent := proxy.Watch(locktest.Scripts)
		locktest.MustRelease(t, hold)
		got := <-next
		locktest.WantSame(t, "scripts", sent.Hits(), 1)
		b.WantCount(got, "1")
		b.WantTTL("k", time.Hour-time.Minute, time.Hour+reserve) // its lease and the reserve
		if got.Field() == hold.Field() {
			t.Error("the next holder has the field of the last one")
		}
		b.Publish(t.Context(), locktest.ChannelOf("k"), "end")
		sub.Want("end")
		locktest.MustRelease(t, got)
		sub.Want("0")
	})
}

// reserve is the time by which a hand-off extends a fixed lease in Redis.
const reserve = 100 * time.Millisecond

// handoff is a lock that a client behind a proxy holds, with waiters of the same client.
type handoff struct {
	*locktest.Redis
	client  *core.Client
	hold    *core.Hold
	waiting []<-chan locktest.Outcome
	cancel  context.CancelFunc // of the first waiter, to which the lock is handed off
	rule    *faultproxy.Rule   // applies to the next hand-off
}

// handoffConfig configures the holder and the waiters of a handoff.
type handoffConfig struct {
	waiters int
	lease   time.Duration   // of the holder; default: a minute
	wanted  time.Duration   // lease of the waiters; default: a minute
	opts    []core.Option   // default: patient
	every   bool            // the fault applies to every hand-off, including the ones that are sent again
	server  *locktest.Redis // an embedded one; default: a real one
}

func newHandoff(t *testing.T, q handoffConfig, f locktest.Fault) *handoff {
	t.Helper()
	if q.opts == nil {
		q.opts = []core.Option{locktest.Patient}
	}
	h := &handoff{Redis: q.server}
	if h.Redis == nil {
		h.Redis = locktest.NewProxied(t)
		h.client = h.Behind(q.opts...)
	} else {
		h.client, h.Proxy = h.BehindAProxy(q.opts...)
	}
	core.LetRunsLast(h.client)
	_, h.hold = locktest.MustAcquire(t, t.Context(), h.client.Lock("k"), leaseOrMinute(q.lease))
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	for i := range q.waiters {
		h.waiting = append(h.waiting, locktest.GoAcquire(ctx, h.client.Lock("k"), leaseOrMinute(q.wanted)))
		locktest.AwaitWaiters(t, h.client, i+1)
		ctx = t.Context()
	}
	match := locktest.ScriptOn(t, "handoff", "k")
	if !q.every {
		match = faultproxy.Once(match)
	}
	h.rule = f.Inject(h.Proxy, match)
	return h
}

// release starts the release and waits until the fault has its hand-off.
func (h *handoff) release() <-chan error {
	h.T.Helper()
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		done <- h.hold.Release(context.Background())
	}()
	select {
	case <-h.rule.Hit():
	case <-ended:
		if h.rule.Hits() == 0 {
			h.T.Fatalf("released without a hand-off: %v", <-done)
		}
	}
	return done
}

func leaseOrMinute(lease time.Duration) core.AcquireOption {
	if lease == 0 {
		lease = time.Minute
	}
	return core.LeaseTime(lease)
}

// wantTurns checks that the waiters get the lock one at a time, in the order of the queue, and that nothing is left at
// the end. The chosen waiter may come later, because it may return to the queue late.
func (h *handoff) wantTurns(waiting []<-chan locktest.Outcome) {
	h.T.Helper()
	next := make(chan locktest.Outcome, len(waiting))
	for _, w := range waiting {
		go func() { next <- <-w }()
	}
	for range waiting {
		o := locktest.Got(h.T, next)
		locktest.WantAlive(h.T, o.Ctx)
		h.WantHolder("k", o.Hold.Field())
		locktest.MustRelease(h.T, o.Hold)
	}
	h.WantFreed("k")
	locktest.Eventually(h.T, "nothing left behind", func() bool {
		s := h.client.Stats()
		return s.Holds == 0 && s.Waiters == 0
	})
}

// TestHandOff_ChosenWaiterCancelled cancels the chosen waiter while the hand-off to it is under way, has been
// executed, or is lost. The waiter returns at once. The lock goes to the next waiter, or is free.
func TestHandOff_ChosenWaiterCancelled(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply, locktest.DropReply, locktest.DropRequest} {
		for _, n := range []int{1, 3} {
			locktest.Parallel(t, f.Name+map[int]string{1: "/alone", 3: "/in a queue"}[n], func(t *testing.T) {
				h := newHandoff(t, handoffConfig{waiters: n}, f)
				done := h.release()
				h.cancel()
				start, o := time.Now(), <-h.waiting[0]
				locktest.WantAtMost(t, "the cancelled waiter", time.Since(start), 0)
				if o.Hold != nil { // the cancel came too late, because the fault holds nothing
					locktest.MustRelease(t, o.Hold)
				} else {
					locktest.WantErr(t, o.Err, context.Canceled, core.ErrNotAcquired)
				}
				h.rule.Release()
				locktest.Must(t, <-done)
				h.wantTurns(h.waiting[1:])
			})
		}
	}
}

// The chosen waiter leaves the queue to prepare its wait, and joins it again, while the hand-off to it is under way.
func TestHandOff_ChosenWaiterPrepares(t *testing.T) {
	t.Parallel()
	var h *handoff
	done := make(chan (<-chan error), 1)
	h = newHandoff(t, handoffConfig{opts: []core.Option{locktest.Patient, core.WithObserver(&core.Observer{
		Contention: func(context.Context, core.Contention) { done <- h.release() },
	})}}, locktest.HoldReply)
	waiting := locktest.GoAcquire(t.Context(), h.client.Lock("k"), core.LeaseTime(time.Minute),
		core.BeforeWait(func(context.Context) error { h.rule.Release(); return nil }))
	locktest.Must(t, <-<-done)
	h.wantTurns([]<-chan locktest.Outcome{waiting})
}

// The lease of the releaser expires while the hand-off is under way. The release returns ErrLost, because another
// client may have the lock.
func TestHandOff_LeaseHasExpired(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		locktest.ParallelBubble(t, map[bool]string{true: "taken", false: "free"}[taken], func(t *testing.T, b *locktest.Redis) {
			h := newHandoff(t, handoffConfig{waiters: 2, lease: 1500 * time.Millisecond, every: true, server: b}, locktest.HoldRequest)
			attempts := h.Proxy.HoldRequest(locktest.ScriptOn(t, "acquire", "k")) // otherwise a waiter takes the free lock
			other := h.Beside()
			done := h.release()
			h.AwaitGone("k")
			var between *core.Hold
			if taken {
				_, between = locktest.MustAcquire(t, t.Context(), other.Lock("k"))
			}
			locktest.Land(h.T, h.rule)
			locktest.WantErr(t, <-done, core.ErrLost)
			if taken {
				h.WantHolder("k", between.Field())
				locktest.MustRelease(t, between)
			}
			attempts.Release()
			h.wantTurns(h.waiting)
		})
	}
}

// The reply to the hand-off arrives after the lease of the chosen waiter has expired, too. The waiter does not have the
// lock and goes on waiting.
func TestHandOff_ReplyAfterTheNewLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		h := newHandoff(t, handoffConfig{waiters: 1, wanted: 300 * time.Millisecond, every: true, server: b}, locktest.HoldReply)
		done := h.release()
		h.AwaitGone("k")
		h.rule.Release()
		locktest.Must(t, <-done)
		o := locktest.Got(h.T, h.waiting[0])
		locktest.WantAlive(t, o.Ctx)
		if o.Hold.Remaining() <= 0 {
			t.Error("the waiter got a lease that has expired")
		}
		h.WantHolder("k", o.Hold.Field())
		locktest.MustRelease(t, o.Hold)
		h.WantFreed("k")
	})
}

// waysToTakeAway are the ways in which other clients change a lock during its hand-off.
var waysToTakeAway = map[string]func(r *locktest.Redis, other *core.Client){
	"deleted": func(r *locktest.Redis, _ *core.Client) { locktest.Must(r.T, r.Client.Del(r.T.Context(), "k").Err()) },
	"forced": func(r *locktest.Redis, other *core.Client) {
		_, err := other.Lock("k").ForceRelease(r.T.Context())
		locktest.Must(r.T, err)
	},
	"stolen": func(r *locktest.Redis, _ *core.Client) { r.Steal("k") },
}

// The key is deleted, forced away or stolen before the hand-off lands. The release returns ErrLost, the lock of the
// other client stays, and the chosen waiter goes on waiting.
func TestHandOff_LockTakenAwayBefore(t *testing.T) {
	t.Parallel()
	for name, takeAway := range waysToTakeAway {
		locktest.Parallel(t, name, func(t *testing.T) {
			h := newHandoff(t, handoffConfig{waiters: 2, every: true}, locktest.HoldRequest)
			other := h.Beside()
			done := h.release()
			takeAway(h.Redis, other)
			locktest.Land(h.T, h.rule)
			locktest.WantErr(t, <-done, core.ErrLost)
			if name == "stolen" {
				h.WantHolder("k", locktest.Stranger)
				locktest.Must(t, h.Client.Del(t.Context(), "k").Err())
			}
			h.wantTurns(h.waiting)
		})
	}
}

// The key is deleted, forced away or stolen after the hand-off and before its reply. The new holder learns that at
// its next renewal, and does not free the lock of the other client.
func TestHandOff_LockTakenAwayAfter(t *testing.T) {
	t.Parallel()
	watchdog := locktest.Unhurried(3 * time.Second)
	for name, takeAway := range waysToTakeAway {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks, other := r.Behind(core.WithWatchdog(watchdog), locktest.Patient), r.Beside()
			core.LetRunsLast(locks)
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			got := locktest.GoAcquire(t.Context(), locks.Lock("k"))
			locktest.AwaitWaiters(t, locks, 1)
			rule := r.Proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "handoff", "k")))
			done := locktest.GoRelease(hold)
			locktest.WithinASecond(t, "the hand-off", func() bool {
				return rule.Hits() == 1 && !r.Client.HExists(t.Context(), "k", hold.Field()).Val()
			})
			takeAway(r, other)
			granted := time.Now()
			rule.Release()
			locktest.Must(t, <-done)
			o := locktest.Got(r.T, got) // the holder cannot know that yet
			locktest.AwaitEnd(t, o.Ctx)
			locktest.WantAtMost(t, "learning of the loss", time.Since(granted), watchdog/3)
			locktest.WantEnded(t, o.Ctx, core.ErrLost)
			locktest.WantErr(t, o.Hold.Release(t.Context()), core.ErrLost)
			if name == "stolen" {
				r.WantHolder("k", locktest.Stranger)
			} else if r.Has("k") {
				t.Error("the key exists again")
			}
		})
	}
}

// TestHandOff_Unanswered leaves the hand-off without an answer until the backend timeout, executed or not. It lands at
// the worst time: while the next holder has the lock, or when the lock is free again.
func TestHandOff_Unanswered(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		for _, held := range []bool{true, false} {
			locktest.ParallelBubble(t, f.Name+map[bool]string{true: "/lands on a holder", false: "/lands on a free lock"}[held], func(t *testing.T, r *locktest.Redis) {
				locks, proxy := r.BehindAProxy(core.WithBackendTimeout(timeout))
				core.LetRunsLast(locks)
				_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
				got := locktest.GoAcquire(t.Context(), locks.Lock("k"))
				locktest.AwaitWaiters(t, locks, 1)
				rule := f.Inject(proxy, locktest.ScriptOn(t, "handoff", "k"))
				start := time.Now()
				locktest.WantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				locktest.WantSoon(t, "released after %s", start, timeout+100*time.Millisecond)
				locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
				o := locktest.Got(r.T, got)
				locktest.WantSoon(t, "the waiter had the lock after %s", start, timeout+time.Second)
				r.WantHolder("k", o.Hold.Field())
				if held {
					locktest.Land(r.T, rule)
					r.WantHolder("k", o.Hold.Field())
					locktest.WantAlive(t, o.Ctx)
				}
				locktest.MustRelease(t, o.Hold)
				r.WantFreed("k")
				locktest.Land(r.T, rule)
				r.WantFreed("k")
			})
		}
	}
}

func TestObservers_ReentryAndHandOff(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := make(chan *core.Hold)
		go func() {
			_, h, _ := locks.Lock("k").Acquire(t.Context())
			next <- h
		}()
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Eventually(t, "contention", func() bool { return obs.Count("contention") == 1 })
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, <-next)
		if r := obs.First(t, "hold end").Data.(core.HoldResult); !r.HandedOff || r.Err != nil {
			t.Errorf("the releaser: got %+v, want handed off", r)
		}
		for _, e := range obs.Events() {
			if r, ok := e.Data.(core.AcquireResult); ok && (r.HandedOff != (r.BlockedBy == hold.Field()) || r.Field != hold.Field()) {
				t.Errorf("acquire end: got %+v", r)
			}
		}
	})
}
