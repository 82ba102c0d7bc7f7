package holding_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// wantLeft checks that observers were notified once of the end of the last hold, and that Close left it.
func wantLeft(t *testing.T, obs *locktest.Recorder) {
	t.Helper()
	if n := obs.Count("loss"); n != 1 {
		t.Fatalf("%d ends of holds, want one", n)
	}
	locktest.WantOnly(t, obs.First(t, "loss").Data.(core.Loss).Cause, core.ErrClosed, core.ErrLost)
	if r := obs.Last(t, "hold end").Data.(core.HoldResult); r.Lost || !r.Left {
		t.Errorf("hold end: got %+v, want a hold that Close left", r)
	}
}

// Close is called while a release waits for its turn. Close leaves the hold to its lease like any other hold, and the
// release does not fail.
func TestClose_LeavesAHoldWhoseReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, inner := range []bool{false, true} {
		locktest.ParallelBubble(t, map[bool]string{false: "the only hold", true: "an inner hold"}[inner], func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			if inner {
				_, hold = locktest.MustAcquire(t, ctx, locks.Lock("k"))
			}
			proxy.HoldReply(locktest.ScriptOn(t, "refresh", "k"))
			proxy.HoldReply(locktest.ScriptOn(t, "sethold", "k"))
			go func() { _ = hold.Refresh(context.Background(), time.Minute) }() // runs first
			locktest.Pass(time.Millisecond)
			done := locktest.GoRelease(hold)
			locktest.Pass(time.Millisecond)
			closed := locktest.GoClose(locks)
			locktest.WantErr(t, <-done, core.ErrClosed)
			locktest.WantErr(t, <-closed, core.ErrClosed)
			if inner { // Close also leaves the outer hold
				locktest.WantSame(t, "losses", obs.Count("loss"), 2)
				if r := obs.Last(t, "hold end").Data.(core.HoldResult); !r.Reentrant || !r.Left {
					t.Errorf("hold end: got %+v, want the inner one, left", r)
				}
				return
			}
			wantLeft(t, obs)
		})
	}
}

// One client of a Redlock is closed. The hold goes on, and its release frees the other servers. The release does not
// fail, although the key on one server is left to its lease.
func TestClose_OneClientOfARedlock(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		obs := &locktest.Recorder{}
		clients := locktest.BehindEach(t, servers, core.WithObserver(obs.Observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", clients...))
		locktest.WantErr(t, <-locktest.GoClose(clients[2]), core.ErrClosed)
		locktest.WantAlive(t, ctx)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		locktest.WantHeldOn(t, servers, "k", 1)
		wantLeft(t, obs)
	})
}

// A renewal that Close cuts short does not count as a failure.
func TestClose_CutsARenewalShort(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldReply(locktest.ScriptOn(t, "renew", "k"))
		<-renewal.Hit()
		locktest.WantErr(t, <-locktest.GoClose(locks), core.ErrClosed)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		wantLeft(t, obs)
		locktest.WantSame(t, "renewals", obs.Count("renewal"), 0)
	})
}

// slowObserver blocks at the first loss.
type slowObserver struct {
	*locktest.Recorder

	first    atomic.Bool
	notified chan struct{}
	release  chan struct{}
}

func (o *slowObserver) observer() *core.Observer {
	observer := o.Recorder.Observer()
	observer.Loss = o.observeLoss
	return observer
}

func (o *slowObserver) observeLoss(ctx context.Context, l core.Loss) {
	if o.first.CompareAndSwap(false, true) {
		close(o.notified)
		<-o.release
	}
	o.Recorder.ObserveLoss(ctx, l)
}

// One key of a MultiLock is lost, and Close leaves the other key before observers are notified of the loss. The whole
// hold is lost.
func TestClose_PartlyLostMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &slowObserver{Recorder: &locktest.Recorder{}, notified: make(chan struct{}), release: make(chan struct{})}
		locks := b.Locks(core.WithObserver(obs.observer()))
		for i := range 10 {
			locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint("other", i))) // observers are mostly notified of these losses first
		}
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b"))
		for i := range 10 {
			b.Take(fmt.Sprint("other", i), locktest.Stranger, time.Hour)
		}
		b.Take("b", locktest.Stranger, time.Hour)
		<-obs.notified
		synctest.Wait()
		closed := locktest.GoClose(locks)
		locktest.Pass(time.Millisecond)
		close(obs.release)
		<-closed
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			t.Errorf("the context has ended with %v", cause)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		if r := obs.Last(t, "hold end").Data.(core.HoldResult); !r.Lost || r.Left {
			t.Errorf("hold end: got %+v, want a lost hold", r)
		}
	})
}

func TestClose_CallersGetErrClosed(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		locks := b.Locks()
		results := make(chan error, 5)
		for range 5 {
			go func() {
				_, _, err := locks.Lock("k").Acquire(t.Context())
				results <- err
			}()
		}
		locktest.AwaitWaiters(t, locks, 5)
		locktest.WantOK(t, locks.Close(t.Context()))
		for range 5 {
			locktest.WantErr(t, <-results, core.ErrClosed)
		}
		_, _, err := locks.Lock("free").Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrClosed)
		_, _, err = locks.MultiLock("a", "b").Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrClosed)
		_, err = locks.Lock("k").State(t.Context())
		locktest.WantErr(t, err, core.ErrClosed)
		locktest.WantErr(t, locks.Ready(t.Context()), core.ErrClosed)
		locktest.WantErr(t, locks.Close(t.Context()), core.ErrClosed)
		b.WantGone("free")
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
	})
}

func TestClose_WaitsForHolds(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		for range 20 {
			locks := b.Locks()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			closed := locktest.Go(func() error { return locks.Close(t.Context()) })
			locktest.Eventually(t, "callers to be refused", func() bool { return locks.Ready(t.Context()) != nil })
			select {
			case err := <-closed:
				t.Fatalf("closed while held: %v", err)
			default:
			}
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)
			locktest.WantOK(t, <-closed)
			b.WantGone("k")
		}
	})
}

// Close waits for a release even if the lease ends while the answer is under way. The caller of Release gets this
// answer.
func TestClose_ReleaseOutlivesItsLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		end    func(h *core.Hold) error
		count  int // of keys that are left
	}{
		"release": {"release", func(h *core.Hold) error { return h.Release(context.Background()) }, 0},
		"leave":   {"handoff", func(h *core.Hold) error { return h.Leave(context.Background(), time.Minute) }, 1},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(2 * time.Second))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(200*time.Millisecond))
			proxy.DelayReply(locktest.ScriptOn(t, c.script, "k"), 800*time.Millisecond)
			start, done := time.Now(), make(chan error, 1)
			go func() { done <- c.end(hold) }()
			locktest.Pass(10 * time.Millisecond)
			locktest.WantOK(t, locks.Close(context.Background()))
			if took := time.Since(start); took < 800*time.Millisecond {
				t.Errorf("closed after %s, want at least 800ms, the time until Redis answers", took)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := b.Exists(t.Context(), "k").Val(); n != int64(c.count) {
				t.Errorf("%d keys are left, want %d", n, c.count)
			}
		})
	}
}

// Close does not cut off an acquisition whose command is under way. If the acquisition gets the lock, Close waits for
// this hold, too.
func TestClose_WaitsForCallersInside(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.DelayReply(faultproxy.Once(locktest.Scripts), 40*time.Millisecond)
		got := make(chan *core.Hold, 1)
		go func() {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantOK(t, err)
			got <- hold
		}()
		locktest.Pass(10 * time.Millisecond)
		closed := locktest.Go(func() error { return locks.Close(t.Context()) })
		hold := <-got
		if hold == nil {
			return
		}
		locktest.Pass(time.Second)
		select {
		case <-closed:
			t.Error("closed while held")
		default:
		}
		locktest.MustRelease(t, hold)
		locktest.WantOK(t, <-closed)
		b.WantGone("k")
	})
}

func TestClose_RenewsWhileItWaits(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		closed := locktest.Go(func() error { return locks.Close(t.Context()) })
		locktest.Pass(5 * time.Minute)
		locktest.WantAlive(t, ctx)
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
		locktest.WantOK(t, <-closed)
		b.WantGone("k")
	})
}

func TestClose_HoldsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		patience, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		err := locks.Close(patience)
		locktest.WantErr(t, err, context.DeadlineExceeded)
		locktest.WantSame(t, "returned after", time.Since(start), 20*time.Second)
		locktest.WantEnded(t, ctx, core.ErrClosed)
		b.WantCount(hold, "1") // Close does not free the lock under a running handler
		if hold.Release(t.Context()) == nil {
			t.Error("release after Close: got nil")
		}
		b.WantCount(hold, "1")
		locktest.Pass(31 * time.Second)
		b.WantGone("k") // no client renews it
	})
}

func TestClose_ErrorCountsTheHoldsItLeaves(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1: "core: client closed with 1 lock held, which is left to its lease: ",
		2: "core: client closed with 2 locks held, which are left to their leases: ",
	} {
		locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			for i := range n {
				locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint("k", i)))
			}
			patience, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := locks.Close(patience); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestClose_LeavesTheRedisClientOpen(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		rdb := b.Connect()
		locks := locktest.NewClient(t, rdb)
		locktest.Must(t, locks.Close(t.Context()))
		locktest.WantOK(t, rdb.Ping(t.Context()).Err())
		again := locktest.NewClient(t, rdb)
		locktest.WantOK(t, again.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// If a grant is on its way to a waiter that Close refuses, the client frees the lock.
func TestClose_GrantToARefusedWaiter(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		result := make(chan error, 1)
		go func() {
			_, h, err := locks.Lock("k").Acquire(t.Context())
			if err == nil {
				err = h.Release(t.Context())
			}
			result <- err
		}()
		locktest.Pass(time.Second)
		slow := proxy.DelayReply(locktest.Scripts, 100*time.Millisecond)
		defer slow.Remove()
		done := locktest.GoRelease(hold)
		locktest.Pass(50 * time.Millisecond)
		locktest.WantOK(t, locks.Close(t.Context()))
		locktest.WantErr(t, <-result, core.ErrClosed)
		locktest.WantOK(t, <-done)
		b.WantGone("k")
	})
}

// A waiter that leaves at the instant at which its grant arrives passes the lock on, even during Close.
func TestClose_WaiterLeavesAtItsGrant(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		for range 30 {
			locks, _ := b.BehindAProxy()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			result := make(chan error, 1)
			go func() {
				_, h, err := locks.Lock("k").Acquire(t.Context())
				if err == nil {
					err = h.Release(t.Context())
				}
				result <- err
			}()
			locktest.Pass(time.Second)
			done := locktest.GoRelease(hold)
			locktest.WantOK(t, locks.Close(t.Context()))
			<-result
			locktest.WantOK(t, <-done)
			b.WantGone("k")
		}
	})
}

func TestClose_WhileRedisIsBlackHoled(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		waiting := make(chan error, 1)
		go func() {
			_, _, err := locks.Lock("other").Acquire(t.Context())
			waiting <- err
		}()
		proxy.BlackHole(true)
		patience, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		locktest.WantErr(t, locks.Close(patience), context.DeadlineExceeded)
		locktest.WantSoon(t, "close took %s", start, 7*time.Second)
		locktest.WantEnded(t, ctx, core.ErrClosed)
		<-waiting
		proxy.BlackHole(false)
	})
}

func TestClose_SendsNoMoreCommands(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.WantErr(t, locks.Close(ended), context.Canceled)
		all := proxy.Watch(faultproxy.Any())
		locktest.Pass(time.Minute)
		locktest.WantSame(t, "commands after Close", all.Hits(), 0)
	})
}

// A hold that Close leaves to its lease is not lost. Observers are notified of the hold at Close, and again when its
// handler ends.
func TestClose_ReportsTheHoldsItLeaves(t *testing.T) {
	t.Parallel()
	ends := map[string]func(ctx context.Context, h *core.Hold) error{
		"release": func(ctx context.Context, h *core.Hold) error { return h.Release(ctx) },
		"leave":   func(ctx context.Context, h *core.Hold) error { return h.Leave(ctx, time.Minute) },
		"release after a handover": func(ctx context.Context, h *core.Hold) error {
			_, moved := h.Handover()
			return moved.Release(ctx)
		},
	}
	for name, end := range ends {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks := b.Locks(core.WithObserver(obs.Observer()))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			locktest.WantErr(t, locks.Close(ended), core.ErrClosed)
			locktest.WantOnly(t, obs.First(t, "loss").Data.(core.Loss).Cause, core.ErrClosed, core.ErrLost)
			locktest.WantErr(t, end(t.Context(), hold), core.ErrClosed)
			locktest.WantSame(t, "losses", obs.Count("loss"), 1)
			if r := obs.Last(t, "hold end").Data.(core.HoldResult); r.Lost || !r.Left {
				t.Errorf("hold end: got %+v, want a hold that Close left", r)
			}
		})
	}
}

// A hold that was lost before Close stays lost.
func TestClose_DoesNotLeaveALostHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Second))
		locktest.Pass(2 * time.Second)
		locktest.WantOK(t, locks.Close(t.Context()))
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		if r := obs.First(t, "hold end").Data.(core.HoldResult); !r.Lost || r.Left {
			t.Errorf("hold end: got %+v, want a lost hold", r)
		}
	})
}

// Close follows a cancelled acquire whose reply is under way. The key is gone when Close returns, not only at the end
// of its lease.
func TestClose_ClearsUpACancelledAcquire(t *testing.T) {
	t.Parallel()
	for name, concurrent := range map[string]bool{"lone": false, "pipelined": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			proxy.DelayReply(locktest.Script(t, "acquire"), 200*time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			got := []<-chan locktest.Outcome{locktest.GoAcquire(ctx, locks.Lock("a"), core.LeaseTime(time.Hour))}
			if concurrent {
				got = append(got, locktest.GoAcquire(ctx, locks.Lock("b"), core.LeaseTime(time.Hour)))
			}
			locktest.Pass(20 * time.Millisecond)
			cancel()
			for _, g := range got {
				locktest.WantErr(t, (<-g).Err, context.Canceled)
			}
			start := time.Now()
			locktest.Must(t, locks.Close(t.Context()))
			locktest.WantSoon(t, "closed after %s", start, core.DefaultBackendTimeout)
			b.WantGone("a", "b")
		})
	}
}

// Close does not wait long for a Redis that is down, even if a question of the client is queued behind another one.
func TestClose_DoesNotWaitForASilentRedis(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.BlackHole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Hour))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		start := time.Now()
		locktest.Must(t, locks.Close(t.Context()))
		locktest.WantSoon(t, "closed after %s", start, 4*core.DefaultBackendTimeout)
	})
}

// If ctx is done, Close leaves the holds to their leases. It does not cut off an operation of a hold that is under way,
// and it does not count a lock that is being freed among those that are left.
func TestClose_OperationUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		do     func(outer, inner *core.Hold) error
		left   string // the locks that the error of Close mentions
		closed bool   // the operation reports that the client was closed under the hold
	}{
		"release":       {"release", func(outer, _ *core.Hold) error { return outer.Release(context.Background()) }, "", false},
		"leave":         {"handoff", func(outer, _ *core.Hold) error { return outer.Leave(context.Background(), time.Minute) }, "", false},
		"inner release": {"sethold", func(_, inner *core.Hold) error { return inner.Release(context.Background()) }, "1 lock held", true},
		"refresh":       {"refresh", func(outer, _ *core.Hold) error { return outer.Refresh(context.Background(), time.Hour) }, "1 lock held", true},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(2 * time.Second))
			ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
			if c.script != "sethold" {
				locktest.MustRelease(t, inner)
			}
			delayed := proxy.DelayReply(locktest.ScriptOn(t, c.script, "k"), 400*time.Millisecond)
			start, done := time.Now(), make(chan error, 1)
			go func() { done <- c.do(outer, inner) }()
			locktest.Pass(10 * time.Millisecond)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			err := locks.Close(ended)
			if took := time.Since(start); took < 400*time.Millisecond || took > time.Second || delayed.Hits() != 1 {
				t.Errorf("closed after %s, %d commands were delayed; want 400 ms and 1", took, delayed.Hits())
			}
			if c.left == "" {
				locktest.WantOK(t, err)
			} else if locktest.WantErr(t, err, core.ErrClosed); err != nil && !strings.Contains(err.Error(), c.left) {
				t.Errorf("Close: got %q, want %q in it", err, c.left)
			}
			if err := <-done; err != nil && (!c.closed || !errors.Is(err, core.ErrClosed)) {
				t.Errorf("the operation: %v", err)
			}
		})
	}
}

// Close returns even if a hook of the Redis client does not return normally.
func TestClose_BesideAHook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook   func(locks *core.Client) // runs once, during the release
		within time.Duration
	}{
		"ends its goroutine": {func(*core.Client) { runtime.Goexit() }, time.Second},
		"blocks":             {func(*core.Client) { time.Sleep(time.Hour) }, time.Minute},
		"calls Close": {func(locks *core.Client) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = locks.Close(ctx) // the Close of the test has its result
		}, time.Minute},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			var locks *core.Client
			var active atomic.Bool
			_, locks = b.BehindHooks(&locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
				if active.CompareAndSwap(true, false) {
					c.hook(locks)
				}
				return next()
			}})
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			active.Store(true)
			go func() { _ = hold.Release(context.Background()) }()
			locktest.Pass(10 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start, closed := time.Now(), make(chan struct{})
			go func() {
				defer close(closed)
				_ = locks.Close(ctx)
			}()
			select {
			case <-closed:
				if took := time.Since(start); took > c.within {
					t.Errorf("closed after %s, want at most %s", took, c.within)
				}
			case <-time.After(50 * time.Minute):
				t.Error("Close did not return")
			}
			locktest.Pass(2 * time.Hour)
		})
	}
}
