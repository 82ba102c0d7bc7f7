package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// stall is the longest time for which a fair lock may stay free, whichever waiters have died.
const stall = 2 * time.Second

// The first 1 or 12 waiters in the queue are dead. They are of this library, of Redisson, or of both. When the lock is
// released or has expired, the first waiter that is alive gets the lock within the time stall.
func TestFair_DeadHeads(t *testing.T) {
	t.Parallel()
	dead := map[string]func(b *locktest.Redis, n int){
		"of this library": func(b *locktest.Redis, n int) {
			proxy, rdb := faultproxy.Around(b.T, b.Client)
			locks := locktest.NewClient(b.T, rdb, locktest.Patient)
			ctx, cancel := context.WithCancel(context.Background())
			b.T.Cleanup(cancel)
			for range n {
				b.JoinQueue(ctx, locks, "k")
			}
			locktest.Pass(100 * time.Millisecond)
			proxy.Refuse(true)
		},
		"that hang": func(b *locktest.Redis, n int) {
			proxy, rdb := faultproxy.Around(b.T, b.Client)
			locks := locktest.NewClient(b.T, rdb, core.WithBackendTimeout(time.Minute))
			ctx, cancel := context.WithCancel(context.Background())
			b.T.Cleanup(cancel)
			for range n {
				b.JoinQueue(ctx, locks, "k")
			}
			locktest.Pass(100 * time.Millisecond)
			proxy.BlackHole(true) // subscriptions stay, as in a stopped process
		},
		"of Redisson": func(b *locktest.Redis, n int) {
			for range n {
				if taken, _, err := b.NewFairThread("k").Try(context.Background()); taken || err != nil {
					b.T.Fatal(taken, err)
				}
			}
		},
	}
	both := func(b *locktest.Redis, n int) {
		dead["of this library"](b, n)
		dead["of Redisson"](b, n)
	}
	dead["of both"] = both
	for name, die := range dead {
		for _, n := range []int{1, 12} {
			for _, how := range []string{"released", "expired"} {
				locktest.ParallelBubble(t, fmt.Sprintf("%d %s, the lock is %s", n, name, how), func(t *testing.T, b *locktest.Redis) {
					_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"), core.LeaseTime(1500*time.Millisecond))
					die(b, n)
					locks, sent := b.Counted()
					field, got := b.JoinQueue(t.Context(), locks, "k")
					_, last := b.JoinQueue(t.Context(), b.Locks(), "k")
					locktest.Pass(300 * time.Millisecond)
					before := sent.Hits()
					if how == "released" {
						locktest.MustRelease(t, hold)
					} else {
						locktest.Pass(b.PTTL(t.Context(), "k").Val())
					}
					freed := time.Now()
					o := locktest.Got(t, got)
					took := time.Since(freed)
					t.Logf("%s: free for %s, %d scripts", t.Name(), took, sent.Hits()-before)
					if took > stall {
						t.Errorf("the lock was free for %s, want at most %s", took, stall)
					}
					// The waiter attempts at the end of the lease (up to three times, because a time in whole milliseconds
					// may be too early), when the notified head should have attempted, once more within 500 ms, when the head
					// is dropped, and when it gets a message for another waiter.
					if n := sent.Hits() - before; n > 7 {
						t.Errorf("%d scripts of a waiter, want at most 7", n)
					}
					if o.Hold.Field() != field {
						t.Errorf("the holder is %s, want %s", o.Hold.Field(), field)
					}
					locktest.MustRelease(t, o.Hold)
					locktest.MustRelease(t, locktest.Got(t, last).Hold)
					b.WantQueue("k")
				})
			}
		}
	}
}

// A thread of Redisson that listens but does not attempt is notified again. If it does not attempt within half a
// minute, it is dropped.
func TestFair_RedissonThatDoesNotTakeItsTurn(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		j := b.NewFairThread("k")
		if _, _, err := j.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		sub := j.Redis.Subscribe(t.Context(), locktest.ChannelOf("k")+":"+j.Field)
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		locks, sent := b.Counted()
		_, got := b.JoinQueue(t.Context(), locks, "k")
		locktest.Pass(10 * time.Second)
		b.WantQueue("k", b.Queued("k")...)
		b.Del(t.Context(), "k") // without a message
		freed, before := time.Now(), sent.Hits()
		if _, err := sub.ReceiveTimeout(t.Context(), 3*time.Second); err != nil {
			t.Errorf("not notified again: %v", err)
		}
		o := locktest.Got(t, got)
		if took := time.Since(freed); took < 20*time.Second || took > 35*time.Second {
			t.Errorf("dropped after %s, want 20s to 35s", took)
		}
		if rate := float64(sent.Hits()-before) / time.Since(freed).Seconds(); rate > 2.5 { // the waiter attempts every 500 ms, with jitter
			t.Errorf("%.1f scripts in a second, want at most 2.5", rate)
		}
		locktest.MustRelease(t, o.Hold)
		b.WantNoQueue("k")
	})
}

// Many waiters wait behind a dead head. Each of them attempts every 500 ms, with jitter, and no more often.
func TestFair_NoWaiterSpinsBehindADeadHead(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const callers = 40
		b.Take("k", locktest.Stranger, time.Hour)
		j := b.NewFairThread("k")
		if _, _, err := j.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		sub := j.Redis.Subscribe(t.Context(), locktest.ChannelOf("k")+":"+j.Field) // the thread seems to listen: it is dropped last
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		locks, sent := b.Counted()
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan locktest.Outcome
		for range callers {
			_, got := b.JoinQueue(ctx, locks, "k")
			all = append(all, got)
		}
		b.Del(t.Context(), "k")
		before := sent.Hits()
		seconds := thorough.Or(20, 6)
		locktest.Pass(time.Duration(seconds) * time.Second)
		rate := float64(sent.Hits()-before) / float64(seconds) / callers
		t.Logf("%.2f scripts of each waiter in a second", rate)
		if rate > 2.5 {
			t.Errorf("%.2f scripts of each waiter in a second, want at most 2.5", rate)
		}
		cancel()
		for _, got := range all {
			locktest.WantErr(t, (<-got).Err, context.Canceled)
		}
	})
}

// The only attempt reaches Redis after its caller has given up. The client clears up the place in the queue that the
// attempt takes.
func TestFair_LateLandingAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{true, false} {
		locktest.ParallelBubble(t, fmt.Sprintf("free %v", free), func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			locks, proxy := b.BehindAProxy()
			late := proxy.HoldRequest(faultproxy.Once(locktest.Script(t, "fair/acquire")))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err := locks.FairLock("k").Acquire(ctx)
			locktest.WantErr(t, err, context.DeadlineExceeded)
			locktest.Pass(10 * time.Second)
			b.WantQueue("k")
			if free {
				b.FreeFair("k")
			}
			late.Release()
			locktest.Pass(2 * time.Second)
			if free {
				b.WantGone("k")
			}
			b.WantQueue("k")
		})
	}
}

// The last attempt of a waiter is answered with an error just after the waiter has left. The client clears up the place
// that an earlier attempt has taken.
func TestFair_LateErrorAfterTheEnd(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		attempt := locktest.Script(t, "fair/acquire")
		first := faultproxy.Once(attempt)
		late := proxy.HoldRequest(func(cmd []string) bool { return attempt(cmd) && !first(cmd) })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, got := b.JoinQueue(ctx, locks, "k")
		<-late.Hit()
		cancel()
		locktest.WantErr(t, (<-got).Err, context.Canceled)
		locktest.Must(t, b.Set(t.Context(), "k", "not a lock", 0).Err())
		late.Release()
		locktest.Pass(time.Second)
		b.WantQueue("k")
	})
}

// Redis is silent at the end of a wait, or answers nothing to a single attempt. Whichever command has no answer, the
// caller never gets the lock, and a second after Redis answers again neither its place in the queue nor its lock is left.
// In Redisson before 4.7 such a caller kept its place for five minutes.
func TestFair_TimeoutLeavesNothing(t *testing.T) {
	t.Parallel()
	attempt, leave := locktest.Script(t, "fair/acquire"), locktest.Script(t, "fair/clear")
	for name, c := range map[string]struct {
		wait  time.Duration
		fault func(p *faultproxy.Proxy) *faultproxy.Rule
	}{
		"the only attempt has no reply": {0, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.DropReply(faultproxy.Once(attempt))
		}},
		"the first attempt has no reply": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.DropReply(faultproxy.Once(attempt))
		}},
		"the later attempts have no reply": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			first := faultproxy.Once(attempt)
			return p.DropReply(func(cmd []string) bool { return attempt(cmd) && !first(cmd) })
		}},
		"no command has a reply": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.DropReply(faultproxy.Any())
		}},
		"all replies are late": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.HoldReply(faultproxy.Any())
		}},
		"leaving has no reply": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.DropReply(faultproxy.Once(leave))
		}},
		"leaving is late": {2 * time.Second, func(p *faultproxy.Proxy) *faultproxy.Rule {
			return p.HoldRequest(faultproxy.Once(leave))
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			locks, proxy := b.BehindAProxy()
			fault := c.fault(proxy)
			_, hold, err := locks.FairLock("k").Acquire(t.Context(), core.WaitTime(c.wait))
			if hold != nil || !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("got %v, %v, want ErrNotAcquired or ErrUnavailable", hold, err)
			}
			locktest.Pass(3 * time.Second)
			if fault.Hits() == 0 {
				t.Error("the fault did not occur")
			}
			fault.Remove()
			locktest.Pass(time.Second)
			b.WantHolder("k", locktest.Stranger)
			b.WantQueue("k")
			b.FreeFair("k")
			start := time.Now()
			_, hold = locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"), core.WaitTime(0))
			locktest.WantSoon(t, "the next caller had the lock after %s", start, 0)
			locktest.MustRelease(t, hold)
			b.WantNothing("warm")
		})
	}
}

// One attempt of a waiter reaches Redis late, after other attempts. The waiter has one place and gets one grant.
func TestFair_LateLandingWhileItWaits(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		late := proxy.HoldRequest(faultproxy.Once(locktest.Script(t, "fair/acquire")))
		got := locktest.GoAcquire(t.Context(), locks.FairLock("k"), core.WaitTime(time.Minute))
		<-late.Hit()
		locktest.Pass(300 * time.Millisecond)
		late.Release()
		locktest.Pass(3 * time.Second)
		if n := len(b.Queued("k")); n != 1 {
			t.Errorf("%d in the queue, want 1: %v", n, b.Queued("k"))
		}
		b.FreeFair("k")
		o := locktest.Got(t, got)
		b.WantCount(o.Hold, "1")
		locktest.MustRelease(t, o.Hold)
		b.WantNoQueue("k")
	})
}

// All keys are deleted while callers wait. The waiters take new places in the queue.
func TestFair_Flush(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		_, one := b.JoinQueue(t.Context(), b.Locks(), "k")
		_, two := b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		start := time.Now()
		b.FlushAll(t.Context())
		for range 2 {
			select {
			case o := <-one:
				locktest.Must(t, o.Err)
				locktest.MustRelease(t, o.Hold)
			case o := <-two:
				locktest.Must(t, o.Err)
				locktest.MustRelease(t, o.Hold)
			}
		}
		locktest.WantSoon(t, "both had the lock after %s", start, stall)
		b.WantNoQueue("k")
	})
}

// A waiter gives up because its wait time ends, its context is canceled, or its client is closed. It leaves the queue
// within a second and never gets the lock. The waiters after it move up.
func TestFair_GivingUp(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		closing := b.Locks(locktest.Patient)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, timed := b.JoinQueue(t.Context(), b.Locks(locktest.Patient), "k", core.WaitTime(locktest.Unhurried(2*time.Second)))
		_, left := b.JoinQueue(ctx, b.Locks(locktest.Patient), "k")
		_, closed := b.JoinQueue(t.Context(), closing, "k")
		field, got := b.JoinQueue(t.Context(), b.Locks(locktest.Patient), "k")
		locktest.WantErr(t, (<-timed).Err, core.ErrNotAcquired)
		cancel()
		locktest.WantErr(t, (<-left).Err, context.Canceled)
		locktest.MustClose(t, closing)
		locktest.WantErr(t, (<-closed).Err, core.ErrClosed)
		locktest.WithinASecond(t, "the others have left", func() bool { return len(b.Queued("k")) == 1 })
		b.WantQueue("k", field)
		b.FreeFair("k")
		locktest.MustRelease(t, locktest.Got(t, got).Hold)
		b.WantNoQueue("k")
	})
}

// A head that gives up after the lock was freed for it passes the turn on.
func TestFair_HeadLeavesAFreeLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		ctx, cancel := context.WithCancel(t.Context())
		_, head := b.JoinQueue(ctx, locks, "k")
		_, got := b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		proxy.DelayRequest(locktest.Script(t, "fair/acquire"), 50*time.Millisecond)
		freed := time.Now()
		b.FreeFair("k")
		cancel()
		if o := <-head; o.Err == nil {
			t.Error("the caller has the lock")
		}
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "the next waiter had the lock after %s", freed, 200*time.Millisecond)
		locktest.MustRelease(t, o.Hold)
		locktest.Pass(time.Second)
		b.WantNoQueue("k")
	})
}

// Clients of this library and threads of Redisson are killed at random, some while they hold the lock. The lock is
// never free for a long time, and nothing is left at the end.
func TestFair_RandomKills(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(3, 1)) {
		locktest.ParallelBubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T, b *locktest.Redis) {
			random := rand.New(rand.NewPCG(seed, 8))
			ctx, stop := context.WithCancel(context.Background())
			over, end := context.WithCancel(context.Background())
			end()
			var all sync.WaitGroup
			var turns atomic.Int64
			start := func() (kill func()) {
				proxy, rdb := faultproxy.Around(t, b.Client)
				locks := locktest.NewClient(t, rdb, locktest.Patient, core.WithWatchdog(time.Second))
				for range 3 {
					all.Go(func() {
						for ctx.Err() == nil {
							err := locks.FairLock("k").Do(ctx, func(context.Context) error {
								time.Sleep(20 * time.Millisecond) // the work, in the time of the bubble
								turns.Add(1)
								return nil
							})
							if err != nil {
								return
							}
						}
					})
				}
				return func() {
					proxy.Refuse(true)
					all.Go(func() { _ = locks.Close(over) }) // only so that the test can end
				}
			}
			redisson := func(ctx context.Context) {
				all.Go(func() {
					for ctx.Err() == nil {
						j := b.NewFairThread("k")
						if j.Lock(ctx) != nil {
							return
						}
						turns.Add(1)
						j.Unlock(t)
					}
				})
			}
			clients := []func(){start(), start(), start(), start()}
			for range 2 {
				redisson(ctx)
			}
			mortal, kill := context.WithCancel(ctx)
			redisson(mortal)
			var free, longest time.Duration
			const look = 10 * time.Millisecond
			for i := range 800 {
				locktest.Pass(look)
				if b.Exists(ctx, "k").Val() == 0 && len(b.Queued("k")) > 0 {
					free += look
					longest = max(longest, free)
				} else {
					free = 0
				}
				if i < 700 && random.IntN(150) == 0 {
					n := random.IntN(len(clients))
					clients[n]()
					clients[n] = start()
				}
				if i < 700 && random.IntN(150) == 0 {
					kill()
					mortal, kill = context.WithCancel(ctx)
					redisson(mortal)
				}
			}
			kill()
			stop()
			all.Wait()
			t.Logf("%d turns, free for %s at most", turns.Load(), longest)
			if longest > stall {
				t.Errorf("the lock was free for %s while a caller waited, want at most %s", longest, stall)
			}
			locktest.Pass(3 * time.Second)
			_, hold := locktest.MustAcquire(t, context.Background(), b.Locks().FairLock("k"), core.WaitTime(5*time.Second))
			locktest.MustRelease(t, hold)
			b.WantNoQueue("k")
		})
	}
}

// A thread of Redisson that returns again and again is not treated as dead, even if its notes say so.
func TestFair_BusyRedissonKeepsItsTurns(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, j := b.Locks(), b.NewFairThread("k")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var ours, theirs int
		all.Go(func() {
			for ctx.Err() == nil {
				_ = locks.FairLock("k").Do(ctx, func(context.Context) error {
					time.Sleep(200 * time.Millisecond) // the work, in the time of the bubble
					ours++
					return nil
				})
			}
		})
		all.Go(func() {
			for j.Lock(ctx) == nil {
				time.Sleep(200 * time.Millisecond) // in the time of the bubble
				theirs++
				j.Unlock(t)
			}
		})
		locktest.Pass(2 * time.Minute)
		cancel()
		all.Wait()
		if d := ours - theirs; d < -1 || d > 1 || ours < 290 {
			t.Errorf("%d turns of this library and %d of Redisson, want the same number, 290 or more", ours, theirs)
		}
	})
}

// A process that was stopped for longer than its lease has lost the lock, and its waiters have lost their places. All
// of them go on.
func TestFair_StoppedProcess(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		stopped := locktest.NewClient(t, rdb, locktest.Patient)
		ctx, hold := locktest.MustAcquire(t, t.Context(), stopped.FairLock("k"), core.LeaseTime(time.Second))
		_, waits := b.JoinQueue(t.Context(), stopped, "k")
		field, got := b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		silent := proxy.HoldRequest(faultproxy.Any()) // its commands arrive when it goes on
		o := locktest.Got(t, got)
		if o.Hold.Field() != field {
			t.Errorf("the holder is %s, want %s", o.Hold.Field(), field)
		}
		silent.Remove()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantCount(o.Hold, "1")
		locktest.Eventually(t, "the other one is back", func() bool { return len(b.Queued("k")) == 1 })
		locktest.MustRelease(t, o.Hold)
		o = locktest.Got(t, waits)
		locktest.MustRelease(t, o.Hold)
		b.WantNoQueue("k")
	})
}
