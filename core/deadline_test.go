package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Redis counts a lease from when it executes the command. Whoever counted from the
// reply, which may be late, would believe in the lock when it is gone.
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
			locktest.MustAcquire(s.t, ctx, s.locks.Lock("l"), core.LeaseTime(2*lease)) // so that k is what ends first
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

// slowReplies is a client that gets the replies of one script late.
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

// A command without an answer may land at any time and raise the TTL again. Until it
// no longer can, a refresh lowers neither the TTL nor what the holder believes.
func TestRefresh_LowersNothingWhileACommandMayStillLand(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease, lower = time.Hour, time.Minute
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		stuck := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "sethold", "k")))
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(short, core.LeaseTime(lease))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		if stuck.Hits() != 1 {
			t.Fatal("no re-entry is stuck")
		}
		locktest.Pass(2 * time.Second) // the entry is taken back
		b.WantCount(hold, "1")

		locktest.Must(t, hold.Refresh(t.Context(), lower))
		b.WantTTL("k", lease-10*time.Second, lease)
		if left := hold.Remaining(); left < lease-time.Minute {
			t.Errorf("remaining: got %s", left)
		}
		locktest.Pass(3 * time.Minute)
		locktest.Must(t, hold.Refresh(t.Context(), lower))
		b.WantTTL("k", lower-time.Second, lower)
		if left := hold.Remaining(); left > lower {
			t.Errorf("remaining: got %s with a lease of %s", left, lower)
		}
		locktest.MustRelease(t, hold)
		stuck.Release()
		locktest.Pass(time.Second)
		b.WantGone("k")
	})
}
