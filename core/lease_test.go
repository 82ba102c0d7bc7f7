package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Redis counts a lease from the execution of the command. A holder that counted from a late reply would trust a lock
// that has expired.
func TestDeadline_CountsFromTheSending(t *testing.T) {
	t.Parallel()
	const lease, late = 10 * time.Second, 300 * time.Millisecond // more than the margin of the lease
	for _, tt := range []struct {
		name  string
		reply string // the script whose replies are late
		act   func(s *slowReplies) *core.Hold
	}{
		{"acquire", "acquire", func(s *slowReplies) *core.Hold {
			_, hold := s.acquired(lease)
			return hold
		}},
		{"acquire of several keys", "acquire_all", func(s *slowReplies) *core.Hold {
			_, hold := locktest.MustAcquire(s.t, s.t.Context(), s.locks.MultiLock("k", "l"), core.LeaseTime(lease))
			return hold
		}},
		{"renewal", "renew", func(s *slowReplies) *core.Hold {
			_, hold := locktest.MustAcquire(s.t, s.t.Context(), s.locks.Lock("k"))
			for s.rule.Executed() == 0 {
				locktest.Pass(late / 10)
			}
			locktest.Pass(late)
			return hold
		}},
		{"re-entry", "sethold", func(s *slowReplies) *core.Hold {
			ctx, _ := s.acquired(time.Second)
			_, inner := locktest.MustAcquire(s.t, ctx, s.locks.Lock("k"), core.LeaseTime(lease))
			return inner
		}},
		{"refresh", "refresh", func(s *slowReplies) *core.Hold {
			_, hold := s.acquired(time.Second)
			locktest.Must(s.t, hold.Refresh(s.t.Context(), lease))
			return hold
		}},
		{"refresh that may only raise", "sethold", func(s *slowReplies) *core.Hold {
			ctx, hold := s.acquired(2 * time.Second)
			locktest.MustAcquire(s.t, ctx, s.locks.Lock("k"), core.LeaseTime(time.Second))
			locktest.Must(s.t, hold.Refresh(s.t.Context(), lease))
			return hold
		}},
		{"hand-off", "handoff", func(s *slowReplies) *core.Hold {
			_, hold := s.acquired(lease)
			got := locktest.GoAcquire(s.t.Context(), s.locks.Lock("k"), core.LeaseTime(lease))
			locktest.AwaitWaiters(s.t, s.locks, 1)
			locktest.MustRelease(s.t, hold)
			return (<-got).Hold
		}},
		{"first key of several", "sethold", func(s *slowReplies) *core.Hold {
			core.PutKeysApart(s.locks)
			s.b.Take("k", locktest.Stranger, time.Second)
			ctx, hold := locktest.MustAcquire(s.t, s.t.Context(), s.locks.MultiLock("k", "l"), core.LeaseTime(lease))
			locktest.MustAcquire(s.t, ctx, s.locks.Lock("l"), core.LeaseTime(2*lease)) // so that k expires first
			return hold
		}},
	} {
		locktest.ParallelBubble(t, tt.name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(locktest.Patient, core.WithWatchdog(lease))
			s := &slowReplies{t: t, b: b, locks: locks}
			s.rule = proxy.DelayReply(locktest.ScriptOn(t, tt.reply, "k"), late)
			hold := tt.act(s)
			if s.rule.Executed() == 0 {
				t.Fatal("no reply was late")
			}
			ttl, left := b.PTTL(t.Context(), "k").Val(), hold.Remaining()
			if left > ttl || left < lease/2 {
				t.Errorf("remaining: got %s with a TTL of %s", left, ttl)
			}
		})
	}
}

// slowReplies is a client that gets the replies of a script late.
type slowReplies struct {
	t     *testing.T
	b     *locktest.Redis
	locks *core.Client
	rule  *faultproxy.Rule
}

func (s *slowReplies) acquired(lease time.Duration) (context.Context, *core.Hold) {
	s.t.Helper()
	return locktest.MustAcquire(s.t, s.t.Context(), s.locks.Lock("k"), core.LeaseTime(lease))
}

// A hold of several leases is lost when fewer of them are left than the hold needs.
func TestHold_NeedsSomeOfItsLeases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs int
		lasts time.Duration // of leases that end after 10, 20 and 30 s
	}{
		"all":      {3, 10 * time.Second},
		"majority": {2, 20 * time.Second},
		"any":      {1, 30 * time.Second},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			seen := &locktest.Recorder{}
			locks := b.Locks(core.WithObserver(seen.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b", "c"), core.LeaseTime(30*time.Second))
			core.NeedsOnly(hold, c.needs)
			core.EndLeaseEarlier(hold, 0, 20*time.Second)
			core.EndLeaseEarlier(hold, 1, 10*time.Second)
			if left := hold.Remaining(); left > c.lasts || left < c.lasts-time.Second {
				t.Errorf("remaining: got %s, want about %s", left, c.lasts)
			}
			locktest.WantAlive(t, ctx)
			locktest.Pass(c.lasts - time.Second)
			locktest.WantAlive(t, ctx)
			if n := seen.Count("loss"); n > 0 || hold.Remaining() <= 0 {
				t.Errorf("%d losses reported; %s remain", n, hold.Remaining())
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
				t.Error("the hold is not lost")
			}
			locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
			locktest.Eventually(t, "a report of the loss", func() bool { return seen.Count("loss") > 0 }) // after the context has ended
			if n := seen.Count("loss"); n != 1 || hold.Remaining() != 0 {
				t.Errorf("%d losses reported; %s remain", n, hold.Remaining())
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		})
	}
}

// The monotonic clock of a suspended machine stands still. A goroutine that waits for Done only is still notified
// soon after the machine goes on.
func TestWatchdog_WallClockJumpClosesDone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(time.Hour))
		renewed, first := locktest.MustAcquire(t, t.Context(), locks.Lock("renewed"))
		fixed, second := locktest.MustAcquire(t, t.Context(), locks.Lock("fixed"), core.LeaseTime(30*time.Minute))
		locktest.Pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute) // less than any lease: nothing happens
		locktest.Pass(5 * time.Second)
		locktest.WantAlive(t, renewed)
		locktest.WantAlive(t, fixed)

		core.JumpWallClock(locks, 20*time.Minute)
		wantEndsSoon(t, fixed)
		locktest.WantErr(t, second.Release(t.Context()), core.ErrLost)
		locktest.WantAlive(t, renewed)

		core.JumpWallClock(locks, time.Hour)
		wantEndsSoon(t, renewed)
		locktest.WantErr(t, first.Release(t.Context()), core.ErrLost)
	})
}

// If the machine was suspended for a part of the lease, the lease is shorter by that part.
func TestWatchdog_WallClockJumpWithinTheLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(30*time.Minute))
		locktest.Pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute)
		left := hold.Remaining()
		locktest.Pass(left - time.Second)
		locktest.WantAlive(t, ctx)
		locktest.Pass(500 * time.Millisecond)
		wantEndsSoon(t, ctx)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// wantEndsSoon checks that a lock is lost, and its holder notified, within about a second.
func wantEndsSoon(t *testing.T, ctx context.Context) {
	t.Helper()
	start := time.Now()
	<-ctx.Done()
	locktest.WantSoon(t, "notified after %s", start, 1100*time.Millisecond)
	locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
}

// Err compares the deadline with both clocks, even if no timer has fired and no notification was sent.
func TestHold_ErrLooksAtTheClock(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*core.Hold){
		"wall clock: the machine was suspended": core.EndLeaseOnWallClock,
		"monotonic clock":                       core.EndLeaseOnMonotonicClock,
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
			locktest.WantAlive(t, ctx)
			end(hold)
			select {
			case <-ctx.Done():
				t.Error("another goroutine has found the loss")
			default:
			}
			if hold.Remaining() != 0 {
				t.Errorf("remaining: got %s, want 0", hold.Remaining())
			}
			if _, ok := core.Held(ctx, "k"); ok {
				t.Error("Held finds a lost hold")
			}
			locktest.WantEnded(t, ctx, core.ErrLost)
			<-ctx.Done() // now all goroutines that wait for the context are notified
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			b.WantHolders("k", map[string]string{hold.Field(): "1"}) // a loss does not free the lock
		})
	}
}

func TestHold_ReleaseLooksAtTheClock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		before := sent.Hits()
		core.EndLeaseOnWallClock(hold)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
		locktest.WantSame(t, "commands about a lock that another client may hold", sent.Hits()-before, 0)
	})
}
