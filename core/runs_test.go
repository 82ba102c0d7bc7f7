package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Within a run the lock passes from caller to caller in memory. Redis sees one holder.
func TestRun_IsReleasedOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		releases, handOffs, counts := proxy.Watch(locktest.ScriptOn(t, "release", "k")), proxy.Watch(locktest.ScriptOn(t, "handoff", "k")), proxy.Watch(locktest.ScriptOn(t, "sethold", "k"))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		var waiting []<-chan locktest.Outcome
		for i := range 5 {
			waiting = append(waiting, locktest.GoAcquire(t.Context(), locks.Lock("k")))
			locktest.AwaitWaiters(t, locks, i+1)
		}
		field := hold.Field()
		for _, w := range waiting {
			locktest.MustRelease(t, hold)
			locktest.WantEnded(t, ctx, core.ErrReleased)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			o := locktest.Got(t, w)
			ctx, hold = o.Ctx, o.Hold
			locktest.WantAlive(t, ctx)
			b.WantCount(hold, "1")
			if hold.Field() != field {
				t.Errorf("the field is %s, want the field of the run, %s", hold.Field(), field)
			}
		}
		locktest.MustRelease(t, hold)
		b.WantGone("k")
		if releases.Hits() != 1 || handOffs.Hits() != 0 || counts.Hits() != 0 {
			t.Errorf("%d releases, %d hand-offs and %d counts, want a single release", releases.Hits(), handOffs.Hits(), counts.Hits())
		}
	})
}

// Each holder of a run re-enters and releases separately.
func TestRun_EachHolderEntersByItself(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		core.LetRunsLast(locks)
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.AwaitWaiters(t, locks, 1)
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
		b.WantCount(hold, "2")
		locktest.MustRelease(t, hold) // the inner hold goes on
		locktest.MustRelease(t, inner)
		o := locktest.Got(t, next)
		b.WantCount(o.Hold, "1")
		again, inner := locktest.MustAcquire(t, o.Ctx, locks.Lock("k"))
		b.WantCount(o.Hold, "2")
		_, _, err := locks.Lock("k").Acquire(context.WithoutCancel(ctx), core.WaitTime(0)) // the context of the first holder carries no lock now
		locktest.WantErr(t, err, core.ErrNotAcquired)
		b.WantCount(o.Hold, "2")
		locktest.WantAlive(t, again)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, o.Hold)
		b.WantGone("k")
	})
}

// Each holder of a run has its own limit, counted from its own grant. A lease that was not renewed any more, because its
// holder had it for too long, is renewed for the next holder.
func TestRun_MaxHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		core.LetRunsLast(locks)
		lock := locks.Lock("k")
		_, first := locktest.MustAcquire(t, t.Context(), lock, core.MaxHold(time.Minute))
		second := locktest.GoAcquire(t.Context(), lock, core.MaxHold(time.Minute))
		locktest.AwaitWaiters(t, locks, 1)
		third := locktest.GoAcquire(t.Context(), lock)
		locktest.Pass(55 * time.Second)
		locktest.MustRelease(t, first)

		o := locktest.Got(t, second)
		locktest.Pass(59 * time.Second)
		locktest.WantAlive(t, o.Ctx)
		locktest.Pass(time.Second)
		locktest.WantEnded(t, o.Ctx, core.ErrHeldTooLong)
		locktest.WantErr(t, o.Hold.Release(t.Context()), core.ErrHeldTooLong)

		last := locktest.Got(t, third)
		for _, h := range []*core.Hold{o.Hold, last.Hold} {
			locktest.WantSame(t, "field of a lock that is passed on", h.Field(), first.Field())
		}
		locktest.Pass(10 * time.Minute)
		locktest.WantAlive(t, last.Ctx)
		b.WantCount(last.Hold, "1")
		locktest.MustRelease(t, last.Hold)
		b.WantGone("k")
	})
}

// A fixed lease in a run is neither shorter nor longer than requested. A longer lease in Redis ends the run.
func TestRun_OfFixedLeases(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease, work = 10 * time.Second, 10 * time.Millisecond
		locks, sent := b.Counted()
		core.LetRunsLast(locks)
		b.Warm(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		var waiting []<-chan locktest.Outcome
		for range 15 {
			waiting = append(waiting, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(lease)))
			synctest.Wait()
		}
		locktest.Pass(work)
		before := sent.Hits()
		var fields []string
		for _, w := range waiting {
			locktest.MustRelease(t, hold)
			o := locktest.Got(t, w)
			hold = o.Hold
			margin := lease/100 + 2*time.Millisecond
			if left := hold.Remaining(); left != lease-margin {
				t.Fatalf("%s of the lease are left, want %s", left, lease-margin)
			}
			if ttl := b.PTTL(t.Context(), "k").Val(); ttl < lease || ttl > lease+reserve {
				t.Fatalf("TTL %s, want %s to %s", ttl, lease, lease+reserve)
			}
			fields = append(fields, hold.Field())
			locktest.Pass(work)
		}
		if n := sent.Hits() - before; n > 3 || len(slices.Compact(fields)) != 2 { // two with the NOSCRIPT of the first hand-off
			t.Errorf("%d scripts, fields %v: want a hand-off in every 100 ms", n, fields)
		}
		locktest.MustRelease(t, hold)
	})
}

// A run ends if the next holder needs an answer of Redis, or if a command of the holder before may still be executed.
func TestRun_EndsWhenRedisHasToBeAsked(t *testing.T) {
	t.Parallel()
	type kind = func(c *core.Client, name string) core.Lock
	lease := core.LeaseTime
	nothing := func(_ *testing.T, _ *core.Client, _ context.Context, hold *core.Hold) *core.Hold { return hold }
	for name, tt := range map[string]struct {
		lock       kind // kind of both holders; nil: Lock
		held       kind // kind of the first holder; nil: lock
		has, wants []core.AcquireOption
		before     func(t *testing.T, locks *core.Client, ctx context.Context, hold *core.Hold) *core.Hold // runs before the release
		passed     bool
	}{
		"nothing":                           {passed: true},
		"of a spin lock":                    {lock: (*core.Client).SpinLock, passed: true},
		"of a fenced lock":                  {lock: (*core.Client).FencedLock},
		"of writers":                        {lock: (*core.Client).WriteLock},
		"a token is wanted":                 {wants: []core.AcquireOption{core.WithToken()}},
		"the holder has a token":            {has: []core.AcquireOption{core.WithToken()}},
		"a longer lease is wanted":          {wants: []core.AcquireOption{lease(time.Minute)}},
		"a shorter lease is wanted":         {wants: []core.AcquireOption{lease(time.Second)}},
		"the watchdog after a longer lease": {has: []core.AcquireOption{lease(time.Minute)}},
		"the lease was refreshed": {before: func(t *testing.T, _ *core.Client, _ context.Context, hold *core.Hold) *core.Hold {
			locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
			return hold
		}},
		"it was entered for longer": {before: func(t *testing.T, locks *core.Client, ctx context.Context, hold *core.Hold) *core.Hold {
			_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"), lease(time.Minute))
			locktest.MustRelease(t, inner)
			return hold
		}},
		"the holder has other keys, too": {held: func(c *core.Client, name string) core.Lock {
			return c.MultiLock(name, "beside")
		}},
		"after a Handover": {passed: true, before: func(_ *testing.T, _ *core.Client, _ context.Context, hold *core.Hold) *core.Hold {
			_, moved := hold.Handover()
			return moved
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			core.LetRunsLast(locks)
			lock, held, before := (*core.Client).Lock, tt.held, nothing
			if tt.lock != nil {
				lock = tt.lock
			}
			if held == nil {
				held = lock
			}
			if tt.before != nil {
				before = tt.before
			}
			ctx, hold := locktest.MustAcquire(t, t.Context(), held(locks, "k"), tt.has...)
			next := locktest.GoAcquire(t.Context(), lock(locks, "k"), tt.wants...)
			synctest.Wait()
			field := hold.Field()
			locktest.MustRelease(t, before(t, locks, ctx, hold))
			o := locktest.Got(t, next)
			if (o.Hold.Field() == field) != tt.passed {
				t.Errorf("the field was %s and is %s", field, o.Hold.Field())
			}
			locktest.MustRelease(t, o.Hold)
			b.WantGone("k")
		})
	}
}

// A command that may land late ends the run. Otherwise the command would change the lock of a later holder of the run,
// which has the same field.
func TestRun_EndsWithACommandWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"the count of a re-entry":                    0,
		"the count that is corrected after that one": 2 * time.Minute, // the first command cannot land any more
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			core.LetRunsLast(locks)
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
			synctest.Wait()
			lost := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
			_, _, err := locks.Lock("k").Acquire(ctx, core.WaitTime(100*time.Millisecond))
			locktest.WantErr(t, err, core.ErrUnavailable)
			locktest.Pass(later)
			done := locktest.GoRelease(hold)
			locktest.Pass(time.Second)
			lost.Release()
			<-done
			o := locktest.Got(t, next)
			if o.Hold.Field() == hold.Field() {
				t.Error("the lock was passed on under the same field")
			}
			b.WantCount(o.Hold, "1")
			locktest.MustRelease(t, o.Hold)
			locktest.Pass(2 * time.Second) // the client clears up an acquire that was held with the counts
			b.WantGone("k")
		})
	}
}

// An operation waits for an earlier operation of the same hold. Before its turn comes, the hold is released and the
// next caller gets the lock. The operation does not touch the lock.
func TestRun_OperationOfAnEarlierHolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration // delay; the release is called after a millisecond
		do    func(locks *core.Client, ctx context.Context, hold *core.Hold) error
	}{
		"Refresh": {0, func(_ *core.Client, ctx context.Context, hold *core.Hold) error {
			return hold.Refresh(ctx, time.Second)
		}},
		"Acquire": {0, func(locks *core.Client, ctx context.Context, _ *core.Hold) error {
			_, _, err := locks.Lock("k").Acquire(ctx)
			return err
		}},
		"Leave": {2 * time.Millisecond, func(_ *core.Client, ctx context.Context, hold *core.Hold) error { // before the release, Leave is allowed
			return hold.Leave(ctx, time.Second)
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			core.LetRunsLast(locks)
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
			synctest.Wait()
			slow := proxy.HoldReply(locktest.ScriptOn(t, "sethold", "k"))
			first := locktest.GoRelease(inner) // runs first
			<-slow.Hit()
			late := make(chan error, 1)
			go func() {
				locktest.Pass(tt.after)
				late <- tt.do(locks, context.WithoutCancel(ctx), hold)
			}()
			locktest.Pass(time.Millisecond)
			done := locktest.GoRelease(hold)
			locktest.Pass(2 * time.Millisecond)
			slow.Release()
			locktest.Must(t, <-first)
			locktest.Must(t, <-done)
			locktest.WantErr(t, <-late, core.ErrNotHeld)
			o := locktest.Got(t, next)
			if o.Hold.Field() != hold.Field() {
				t.Error("nothing is tested: the lock was not passed on")
			}
			b.WantCount(o.Hold, "1")
			b.WantTTL("k", 29*time.Second, 30*time.Second)
			locktest.WantAlive(t, o.Ctx)
			locktest.MustRelease(t, o.Hold)
			b.WantGone("k")
		})
	}
}

// The answer to a renewal for an earlier holder comes when the next holder has the lock. It does not move the deadline of
// that holder, and observers are not notified. A renewed lock is then renewed for its present holder.
func TestRun_RenewalForAnEarlierHolder(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.AcquireOption{"fixed": {core.LeaseTime(50 * time.Millisecond)}, "renewed": nil} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			var renewals atomic.Int32
			locks, proxy := b.BehindAProxy(core.WithWatchdog(100*time.Millisecond), core.WithObserver(&core.Observer{
				Renewal: func(context.Context, core.Renewal) { renewals.Add(1) },
			}))
			core.LetRunsLast(locks)
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"), opts...)
			late := proxy.HoldReply(locktest.Script(t, "renew"))
			<-late.Hit()
			locktest.MustRelease(t, hold)
			o := locktest.Got(t, next)
			if o.Hold.Field() != hold.Field() {
				t.Error("nothing is tested: the lock was not passed on")
			}
			left := o.Hold.Remaining()
			late.Release()
			locktest.Pass(time.Millisecond)
			locktest.WantSame(t, "left", o.Hold.Remaining(), left-time.Millisecond)
			locktest.WantSame(t, "renewals", renewals.Load(), 0)
			locktest.Pass(time.Second)
			if opts == nil {
				locktest.WantAlive(t, o.Ctx)
				locktest.MustRelease(t, o.Hold)
			} else {
				locktest.WantEnded(t, o.Ctx, core.ErrLost)
			}
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// After a forced release, the message or the next renewal ends the hold that has the lock at that time.
func TestRun_ForcedAway(t *testing.T) {
	t.Parallel()
	for name, forced := range map[string]bool{"by a message": true, "without one": false} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			core.LetRunsLast(locks)
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
			synctest.Wait()
			if !forced {
				b.Del(t.Context(), "k")
			}
			locktest.MustRelease(t, hold)
			o := locktest.Got(t, next)
			if forced {
				other := locktest.GoAcquire(t.Context(), locks.Lock("k")) // hears the message
				locktest.Pass(time.Second)
				_, err := b.Locks().Lock("k").ForceRelease(t.Context())
				locktest.Must(t, err)
				locktest.Pass(10 * time.Millisecond)
				locktest.MustRelease(t, (<-other).Hold)
			} else {
				locktest.Pass(10 * time.Second)
			}
			locktest.WantEnded(t, o.Ctx, core.ErrLost)
			locktest.WantErr(t, o.Hold.Release(t.Context()), core.ErrLost)
			b.WantGone("k")
		})
	}
}

// While the client asks Redis whether the lock still exists, the client does not pass the lock on. Here a message makes
// the client ask. The waiter that received the message has left since, and another waiter has come.
func TestRun_EndsWithADoubt(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		first, leave := context.WithCancel(t.Context())
		leaves := locktest.GoAcquire(first, locks.Lock("k"))
		locktest.Pass(time.Second) // the client listens
		attempt, question := proxy.HoldRequest(locktest.ScriptOn(t, "acquire", "k")), proxy.HoldRequest(locktest.Script(t, "renew"))
		b.Del(t.Context(), "k")
		b.Publish(t.Context(), locktest.ChannelOf("k"), "0")
		locktest.Pass(100 * time.Millisecond)
		leave()
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.Pass(time.Millisecond)
		done := locktest.GoRelease(hold)
		locktest.Pass(time.Millisecond)
		attempt.Release()
		question.Release()
		locktest.WantErr(t, <-done, core.ErrLost)
		locktest.WantErr(t, (<-leaves).Err, context.Canceled)
		o := locktest.Got(t, next)
		b.WantCount(o.Hold, "1")
		locktest.MustRelease(t, o.Hold)
	})
}

// The watchdog renews the lock for each holder of a run.
func TestRun_IsRenewed(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		field := hold.Field()
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.Pass(14 * time.Second)
		locktest.MustRelease(t, hold)
		o := locktest.Got(t, next)
		hold = o.Hold
		locktest.Pass(5 * time.Minute)
		locktest.WantAlive(t, o.Ctx)
		b.WantCount(hold, "1")
		if hold.Field() != field {
			t.Error("nothing is tested: the lock was not passed on")
		}
		if left := hold.Remaining(); left < 15*time.Second {
			t.Errorf("%s are left, want at least 15s", left)
		}
		locktest.MustRelease(t, hold)
		b.WantGone("k")
		locktest.WantSame(t, "holds", locks.Stats().Holds, 0)
	})
}

// While Redis is silent, a run goes on until its end, because the lock is held in Redis. Then the callers that are left get
// ErrUnavailable.
func TestRun_WhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		var waiting []<-chan locktest.Outcome
		for range 3 {
			waiting = append(waiting, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute)))
			synctest.Wait()
		}
		locktest.Pass(time.Millisecond) // the client listens
		silent := proxy.HoldRequest(faultproxy.Command("evalsha", "eval", "ping"))
		start := time.Now()
		locktest.MustRelease(t, hold)
		o := locktest.Got(t, waiting[0])
		locktest.WantSoon(t, "passed on after %s", start, 0)
		b.WantCount(o.Hold, "1")
		locktest.Pass(500 * time.Millisecond)
		done := locktest.GoRelease(o.Hold)
		locktest.WantErr(t, <-done, core.ErrUnavailable)
		for _, next := range waiting[1:] {
			locktest.WantErr(t, (<-next).Err, core.ErrUnavailable)
		}
		locktest.WantSoon(t, "Redis was silent, and the last caller had its error after %s", start, 4*time.Second)
		silent.Release()
		locktest.Pass(2 * time.Second)
		b.WantGone("k")
	})
}

// A waiter that gives up at the instant at which it gets the lock passes the lock on.
func TestRun_OfWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		core.LetRunsLast(locks)
		for range 200 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			first := locktest.GoAcquire(ctx, locks.Lock("k"))
			locktest.AwaitWaiters(t, locks, 1)
			second := locktest.GoAcquire(t.Context(), locks.Lock("k"))
			locktest.AwaitWaiters(t, locks, 2)
			go cancel()
			locktest.MustRelease(t, hold)
			if o := <-first; o.Err == nil {
				locktest.MustRelease(t, o.Hold)
			}
			o := locktest.Got(t, second)
			locktest.WantAlive(t, o.Ctx)
			locktest.MustRelease(t, o.Hold)
			locktest.Eventually(t, "the lock is free", func() bool { return b.Exists(context.Background(), "k").Val() == 0 })
		}
	})
}

// A release passes over a waiter whose attempt is under way. Such a waiter could take the lock only after the end of
// its attempt, which takes a while if Redis has lost the command.
func TestRun_PassesOverAWaiterThatAttempts(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		first := true
		lost := proxy.HoldRequest(faultproxy.All(locktest.ScriptOn(t, "acquire", "k"), func([]string) bool {
			defer func() { first = false }()
			return first
		}))
		stuck := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		synctest.Wait()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(0)) // outside the queue
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		synctest.Wait()
		locktest.MustRelease(t, hold)
		synctest.Wait()
		select {
		case o := <-next:
			locktest.Must(t, o.Err)
			if o.Hold.Field() != hold.Field() {
				t.Error("nothing is tested: the lock was not passed on")
			}
			locktest.MustRelease(t, o.Hold)
			lost.Remove()
			locktest.MustRelease(t, (<-stuck).Hold)
		default:
			t.Error("the next waiter does not have the lock")
			lost.Remove()
			locktest.MustRelease(t, (<-stuck).Hold)
			locktest.MustRelease(t, (<-next).Hold)
		}
		b.WantGone("k")
	})
}

// If the lock is passed to a waiter that has just given up, no caller holds the lock. The client frees the lock, even
// if the client is closed at that instant.
func TestRun_ClosedWithWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		for range 20 {
			locks := b.Locks()
			core.LetRunsLast(locks)
			ctx, cancel := context.WithCancel(t.Context())
			var holds []*core.Hold
			var waiting []<-chan locktest.Outcome
			for i := range 20 {
				lock := locks.Lock(fmt.Sprint("k", i))
				_, hold := locktest.MustAcquire(t, t.Context(), lock)
				holds, waiting = append(holds, hold), append(waiting, locktest.GoAcquire(ctx, lock))
			}
			synctest.Wait()
			for _, hold := range holds {
				locktest.MustRelease(t, hold)
			}
			cancel()
			<-locktest.GoClose(locks)
			for i, w := range waiting {
				if key := fmt.Sprint("k", i); (<-w).Err != nil {
					b.WantGone(key)
				} else {
					b.Del(t.Context(), key) // the caller has the lock, and Close leaves it to its lease
				}
			}
			if t.Failed() {
				return
			}
		}
	})
}

// A MultiLock that gets a key with a shorter lease asks Redis for its whole lease. A later waiter that wants a shorter
// lease does not get the key in a run.
func TestRun_EndsWithTheLeaseOfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease = 16 * time.Second // at least half of the lease of the watchdog, so that the lock is passed on to the MultiLock
		locks := b.Locks()
		core.LetRunsLast(locks)
		core.PutKeysApart(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("a"), core.LeaseTime(lease))
		several := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"))
		synctest.Wait()
		locktest.MustRelease(t, hold)
		both := locktest.Got(t, several)
		if both.Hold.Field() != hold.Field() {
			t.Fatal("nothing is tested: the lock was not passed on")
		}
		_, inner := locktest.MustAcquire(t, both.Ctx, locks.Lock("a"), core.LeaseTime(lease))
		next := locktest.GoAcquire(t.Context(), locks.Lock("a"), core.LeaseTime(lease))
		synctest.Wait()
		locktest.MustRelease(t, both.Hold)
		locktest.MustRelease(t, inner)
		o := locktest.Got(t, next)
		b.WantTTL("a", lease-time.Second, lease+reserve)
		locktest.MustRelease(t, o.Hold)
		b.WantGone("a", "b")
	})
}

// The callers of a run have one field. Evict takes the lock from the caller that has it at that time. Earlier callers
// are not notified.
func TestEvict_HolderOfARun(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, operator := b.Locks(), b.Locks()
		core.LetRunsLast(locks)
		ctx, first := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.AwaitWaiters(t, locks, 1)
		seen, err := operator.Inspect(t.Context(), "k")
		locktest.Must(t, err)
		locktest.MustRelease(t, first)
		o := locktest.Got(t, next)
		lost, err := operator.Evict(t.Context(), "k", seen.Holders[0].Field)
		locktest.Must(t, err)
		if len(lost.Holders) != 1 || lost.Holders[0].Field != o.Hold.Field() {
			t.Errorf("lost by %+v, want %s", lost.Holders, o.Hold.Field())
		}
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.WantErr(t, o.Hold.Release(t.Context()), core.ErrLost)
	})
}
