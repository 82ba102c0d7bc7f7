package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// Within a run the lock passes from caller to caller in memory: Redis sees one holder.
func TestRun_IsReleasedOnce(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		core.LetRunsLast(locks)
		releases, handOffs, counts := proxy.Watch(scriptOn(t, "release", "k")), proxy.Watch(scriptOn(t, "handoff", "k")), proxy.Watch(scriptOn(t, "sethold", "k"))
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		var waiting []<-chan outcome
		for i := range 5 {
			waiting = append(waiting, acquiring(t.Context(), locks.Lock("k")))
			waiters(t, locks, i+1)
		}
		field := hold.Field()
		for _, w := range waiting {
			released(t, hold)
			wantEnded(t, ctx, core.ErrReleased)
			wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			o := <-w
			must(t, o.err)
			ctx, hold = o.ctx, o.hold
			wantAlive(t, ctx)
			b.wantCount(hold, "1")
			if hold.Field() != field {
				t.Errorf("the field is %s, want the field of the run, %s", hold.Field(), field)
			}
		}
		released(t, hold)
		b.wantGone("k")
		if releases.Hits() != 1 || handOffs.Hits() != 0 || counts.Hits() != 0 {
			t.Errorf("%d releases, %d hand-offs and %d counts, want one release", releases.Hits(), handOffs.Hits(), counts.Hits())
		}
	})
}

// Each holder of a run enters again, and leaves, by itself.
func TestRun_EachHolderEntersByItself(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		core.LetRunsLast(locks)
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		next := acquiring(t.Context(), locks.Lock("k"))
		waiters(t, locks, 1)
		_, inner := acquired(t, ctx, locks.Lock("k"))
		b.wantCount(hold, "2")
		released(t, hold) // the inner hold goes on
		released(t, inner)
		o := <-next
		must(t, o.err)
		b.wantCount(o.hold, "1")
		again, inner := acquired(t, o.ctx, locks.Lock("k"))
		b.wantCount(o.hold, "2")
		_, _, err := locks.Lock("k").Acquire(context.WithoutCancel(ctx), core.WaitTime(0)) // the first holder's context holds nothing now
		wantErr(t, err, core.ErrNotAcquired)
		b.wantCount(o.hold, "2")
		wantAlive(t, again)
		released(t, inner)
		released(t, o.hold)
		b.wantGone("k")
	})
}

// A fixed lease is never shorter than asked for, nor longer; what Redis is asked for more ends the run.
func TestRun_OfFixedLeases(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const lease, work = 10 * time.Second, 10 * time.Millisecond
		locks, sent := b.counted()
		core.LetRunsLast(locks)
		b.warm(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		var waiting []<-chan outcome
		for range 15 {
			waiting = append(waiting, acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(lease)))
			synctest.Wait()
		}
		pass(work)
		before := sent.Hits()
		var fields []string
		for _, w := range waiting {
			released(t, hold)
			o := <-w
			must(t, o.err)
			hold = o.hold
			margin := lease/100 + 2*time.Millisecond
			if left := hold.Remaining(); left != lease-margin {
				t.Fatalf("%s of the lease are left, want %s", left, lease-margin)
			}
			if ttl := b.PTTL(t.Context(), "k").Val(); ttl < lease || ttl > lease+reserve {
				t.Fatalf("TTL %s", ttl)
			}
			fields = append(fields, hold.Field())
			pass(work)
		}
		if n := sent.Hits() - before; n > 3 || len(slices.Compact(fields)) != 2 { // NOSCRIPT of the first hand-off
			t.Errorf("%d scripts, fields %v: want a hand-off in every 100 ms", n, fields)
		}
		released(t, hold)
	})
}

// What a reply is needed for, or was meant for the holder before, ends a run.
func TestRun_EndsWhereRedisHasToBeAsked(t *testing.T) {
	t.Parallel()
	type kind = func(c *core.Client, name string) core.Lock
	lease := core.LeaseTime
	nothing := func(_ *testing.T, _ *core.Client, _ context.Context, hold *core.Hold) *core.Hold { return hold }
	for name, tt := range map[string]struct {
		lock       kind // of both; nil: Lock
		held       kind // of the holder; nil: lock
		has, wants []core.AcquireOption
		before     func(t *testing.T, locks *core.Client, ctx context.Context, hold *core.Hold) *core.Hold // the release
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
			must(t, hold.Refresh(t.Context(), time.Minute))
			return hold
		}},
		"it was entered for longer": {before: func(t *testing.T, locks *core.Client, ctx context.Context, hold *core.Hold) *core.Hold {
			_, inner := acquired(t, ctx, locks.Lock("k"), lease(time.Minute))
			released(t, inner)
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks := b.locks()
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
			ctx, hold := acquired(t, t.Context(), held(locks, "k"), tt.has...)
			next := acquiring(t.Context(), lock(locks, "k"), tt.wants...)
			synctest.Wait()
			field := hold.Field()
			released(t, before(t, locks, ctx, hold))
			o := <-next
			must(t, o.err)
			if (o.hold.Field() == field) != tt.passed {
				t.Errorf("the field was %s, and is %s", field, o.hold.Field())
			}
			released(t, o.hold)
			b.wantGone("k")
		})
	}
}

// A command that may land late was meant for the holder that sent it.
func TestRun_EndsWithACommandWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"the count of a re-entry":                    0,
		"the count that is put right after that one": 2 * time.Minute, // the first one cannot land any more
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			core.LetRunsLast(locks)
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			next := acquiring(t.Context(), locks.Lock("k"))
			synctest.Wait()
			lost := proxy.HoldRequest(scriptOn(t, "sethold", "k"))
			_, _, err := locks.Lock("k").Acquire(ctx, core.WaitTime(100*time.Millisecond))
			wantErr(t, err, core.ErrUnavailable)
			pass(later)
			done := releasing(hold)
			pass(time.Second)
			lost.Release()
			<-done
			o := <-next
			must(t, o.err)
			if o.hold.Field() == hold.Field() {
				t.Error("the lock was passed on under the same field")
			}
			b.wantCount(o.hold, "1")
			released(t, o.hold)
			pass(2 * time.Second) // an acquire that was held back with the counts is cleared up
			b.wantGone("k")
		})
	}
}

// An operation of a hold waits for its turn behind another one. When it has its turn, the hold has been
// released, and the next caller has the lock.
func TestRun_OperationsOfAnEarlierHolderTouchNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration // the release is called after a millisecond
		do    func(locks *core.Client, ctx context.Context, hold *core.Hold) error
	}{
		"Refresh": {0, func(_ *core.Client, ctx context.Context, hold *core.Hold) error {
			return hold.Refresh(ctx, time.Second)
		}},
		"Acquire": {0, func(locks *core.Client, ctx context.Context, _ *core.Hold) error {
			_, _, err := locks.Lock("k").Acquire(ctx)
			return err
		}},
		"Leave": {2 * time.Millisecond, func(_ *core.Client, ctx context.Context, hold *core.Hold) error { // before the release it may leave
			return hold.Leave(ctx, time.Second)
		}},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			core.LetRunsLast(locks)
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			_, inner := acquired(t, ctx, locks.Lock("k"))
			next := acquiring(t.Context(), locks.Lock("k"))
			synctest.Wait()
			slow := proxy.HoldReply(scriptOn(t, "sethold", "k"))
			first := releasing(inner) // has the turn
			<-slow.Hit()
			late := make(chan error, 1)
			go func() {
				pass(tt.after)
				late <- tt.do(locks, context.WithoutCancel(ctx), hold)
			}()
			pass(time.Millisecond)
			done := releasing(hold)
			pass(2 * time.Millisecond)
			slow.Release()
			must(t, <-first)
			must(t, <-done)
			wantErr(t, <-late, core.ErrNotHeld)
			o := <-next
			must(t, o.err)
			if o.hold.Field() != hold.Field() {
				t.Error("nothing is tested: the lock was not passed on")
			}
			b.wantCount(o.hold, "1")
			b.wantTTL("k", 29*time.Second, 30*time.Second)
			wantAlive(t, o.ctx)
			released(t, o.hold)
			b.wantGone("k")
		})
	}
}

// The message of a force release, or the next renewal, finds that the lock is gone, and ends the hold that
// has the lock at that time.
func TestRun_ForcedAway(t *testing.T) {
	t.Parallel()
	for name, forced := range map[string]bool{"by a message": true, "without one": false} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks := b.locks()
			core.LetRunsLast(locks)
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			next := acquiring(t.Context(), locks.Lock("k"))
			synctest.Wait()
			if !forced {
				b.Del(t.Context(), "k")
			}
			released(t, hold)
			o := <-next
			must(t, o.err)
			if forced {
				other := acquiring(t.Context(), locks.Lock("k")) // hears the message
				pass(time.Second)
				_, err := b.locks().Lock("k").ForceRelease(t.Context())
				must(t, err)
				pass(10 * time.Millisecond)
				released(t, (<-other).hold)
			} else {
				pass(10 * time.Second)
			}
			wantEnded(t, o.ctx, core.ErrLost)
			wantErr(t, o.hold.Release(t.Context()), core.ErrLost)
			b.wantGone("k")
		})
	}
}

// While there is a doubt whether Redis has the lock still, it is not passed on. The message that raises the
// doubt is late: the waiter that has heard it has left, and another one has come.
func TestRun_EndsWithADoubt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		first, leave := context.WithCancel(t.Context())
		leaves := acquiring(first, locks.Lock("k"))
		pass(time.Second) // it listens
		attempt, question := proxy.HoldRequest(scriptOn(t, "acquire", "k")), proxy.HoldRequest(script(t, "renew"))
		b.Del(t.Context(), "k")
		b.Publish(t.Context(), channelOf("k"), "0")
		pass(100 * time.Millisecond)
		leave()
		next := acquiring(t.Context(), locks.Lock("k"))
		pass(time.Millisecond)
		done := releasing(hold)
		pass(time.Millisecond)
		attempt.Release()
		question.Release()
		wantErr(t, <-done, core.ErrLost)
		wantErr(t, (<-leaves).err, context.Canceled)
		o := <-next
		must(t, o.err)
		b.wantCount(o.hold, "1")
		released(t, o.hold)
	})
}

// The watchdog goes on with a run, for each of its holders.
func TestRun_IsRenewed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		field := hold.Field()
		next := acquiring(t.Context(), locks.Lock("k"))
		pass(14 * time.Second)
		released(t, hold)
		o := <-next
		must(t, o.err)
		hold = o.hold
		pass(5 * time.Minute)
		wantAlive(t, o.ctx)
		b.wantCount(hold, "1")
		if hold.Field() != field {
			t.Error("nothing is tested: the lock was not passed on")
		}
		if left := hold.Remaining(); left < 15*time.Second {
			t.Errorf("%s are left", left)
		}
		released(t, hold)
		b.wantGone("k")
		wantSame(t, "holds", locks.Stats().Holds, 0)
	})
}

// A waiter that gives up in the instant in which the lock is passed to it passes it on.
func TestRun_OfWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		core.LetRunsLast(locks)
		for range 200 {
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			first := acquiring(ctx, locks.Lock("k"))
			waiters(t, locks, 1)
			second := acquiring(t.Context(), locks.Lock("k"))
			waiters(t, locks, 2)
			go cancel()
			released(t, hold)
			if o := <-first; o.err == nil {
				released(t, o.hold)
			}
			o := <-second
			must(t, o.err)
			wantAlive(t, o.ctx)
			released(t, o.hold)
			eventually(t, "the lock is free", func() bool { return b.Exists(context.Background(), "k").Val() == 0 })
		}
	})
}

// The lock passes over a waiter whose own attempt is under way: that waiter sees the lock only when its attempt
// has ended, which takes a while if Redis has lost the command.
func TestRun_PassesOverAWaiterThatAttempts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		core.LetRunsLast(locks)
		first := true
		lost := proxy.HoldRequest(faultproxy.All(scriptOn(t, "acquire", "k"), func([]string) bool {
			defer func() { first = false }()
			return first
		}))
		stuck := acquiring(t.Context(), locks.Lock("k"))
		synctest.Wait()
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.WaitTime(0)) // beside the queue
		next := acquiring(t.Context(), locks.Lock("k"))
		synctest.Wait()
		released(t, hold)
		synctest.Wait()
		select {
		case o := <-next:
			must(t, o.err)
			if o.hold.Field() != hold.Field() {
				t.Error("nothing is tested: the lock was not passed on")
			}
			released(t, o.hold)
			lost.Remove()
			released(t, (<-stuck).hold)
		default:
			t.Error("the next waiter does not have the lock")
			lost.Remove()
			released(t, (<-stuck).hold)
			released(t, (<-next).hold)
		}
		b.wantGone("k")
	})
}

// A lock that is passed to a waiter that has just given up is freed, also when the client is closed in
// that instant: no caller holds it.
func TestRun_ClosedWithWaitersThatGiveUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 20 {
			locks := b.locks()
			core.LetRunsLast(locks)
			ctx, cancel := context.WithCancel(t.Context())
			var holds []*core.Hold
			var waiting []<-chan outcome
			for i := range 20 {
				lock := locks.Lock(fmt.Sprint("k", i))
				_, hold := acquired(t, t.Context(), lock)
				holds, waiting = append(holds, hold), append(waiting, acquiring(ctx, lock))
			}
			synctest.Wait()
			for _, hold := range holds {
				released(t, hold)
			}
			cancel()
			<-closedNow(locks)
			for i, w := range waiting {
				if key := fmt.Sprint("k", i); (<-w).err != nil {
					b.wantGone(key)
				} else {
					b.Del(t.Context(), key) // the caller has the lock, which is left to its lease
				}
			}
			if t.Failed() {
				return
			}
		}
	})
}

// A MultiLock asks for its whole lease where it got less. A waiter for less does not get that in a run.
func TestRun_EndsWithTheLeaseOfAMultiLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const lease = 16 * time.Second // of the half of the watchdog's at least, which is passed on to it
		locks := b.locks()
		core.LetRunsLast(locks)
		core.PutKeysApart(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("a"), core.LeaseTime(lease))
		several := acquiring(t.Context(), locks.MultiLock("a", "b"))
		synctest.Wait()
		released(t, hold)
		both := <-several
		must(t, both.err)
		if both.hold.Field() != hold.Field() {
			t.Fatal("nothing is tested: the lock was not passed on")
		}
		_, inner := acquired(t, both.ctx, locks.Lock("a"), core.LeaseTime(lease))
		next := acquiring(t.Context(), locks.Lock("a"), core.LeaseTime(lease))
		synctest.Wait()
		released(t, both.hold)
		released(t, inner)
		o := <-next
		must(t, o.err)
		b.wantTTL("a", lease-time.Second, lease+reserve)
		released(t, o.hold)
		b.wantGone("a", "b")
	})
}

// A refresh that has to wait for its turn finds that its hold was moved meanwhile. The moved hold is
// renewed as before.
func TestHandover_BeforeTheTurnOfARefresh(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		_, inner := acquired(t, ctx, locks.Lock("k"))
		slow := proxy.HoldReply(scriptOn(t, "sethold", "k"))
		first := releasing(inner) // has the turn
		<-slow.Hit()
		late := make(chan error, 1)
		go func() { late <- hold.Refresh(context.Background(), time.Minute) }()
		synctest.Wait()
		moved, hold := hold.Handover()
		slow.Release()
		must(t, <-first)
		wantErr(t, <-late, core.ErrNotHeld)
		pass(10 * time.Minute)
		wantAlive(t, moved)
		released(t, hold)
		b.wantGone("k")
	})
}
