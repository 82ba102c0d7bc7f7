package core_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A caller with WaitTime(0) gets a lock while other callers wait for the same name as another kind. The waiters are
// refused, and do not get a lock of the wrong kind.
func TestKinds_GrantBesideWaitersOfAnotherKind(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks := r.Behind(locktest.Patient)
	core.LetRunsLast(locks)
	grant := r.Proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
	plain := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0), core.LeaseTime(time.Minute))
	<-grant.Hit()
	refused := r.Proxy.Watch(locktest.ScriptOn(t, "fenced/acquire", "k"))
	fenced := locktest.GoAcquire(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	behind := locktest.GoAcquire(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	locktest.AwaitWaiters(t, locks, 2)
	locktest.Eventually(t, "an attempt of the waiters", func() bool { return refused.Hits() > 0 })
	grant.Release()
	hold := locktest.Got(r.T, plain).Hold
	for _, got := range []<-chan locktest.Outcome{fenced, behind} {
		locktest.WantErr(t, (<-got).Err, core.ErrInvalid)
	}
	next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
	locktest.AwaitWaiters(t, locks, 1)
	locktest.MustRelease(t, hold)
	locktest.MustRelease(t, locktest.Got(r.T, next).Hold)
	if keys := r.Client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// Tokens rise up to the largest number that a script can distinguish from the next one. If the counter is larger, the
// lock is not acquired, and the error gives this reason.
func TestWithToken_CounterTooHigh(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithTokens() {
		for _, at := range []int64{1<<53 - 3, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 3, 1<<63 - 2, 1<<63 - 1, -1 << 63} {
			locktest.ParallelEachRedis(t, kind.Name+"/"+strconv.FormatInt(at, 10), func(t *testing.T, b *locktest.Redis) {
				b.Set(t.Context(), locktest.TokenCounterOf("order:42"), at, 0)
				l, last, refused := kind.On(b.Locks(locktest.Patient), "order:42"), int64(0), false
				for range 4 {
					_, hold, err := l.Acquire(t.Context(), core.WithToken(), core.WaitTime(0))
					if err == nil && (refused || hold.Token() <= last) {
						t.Fatalf("token %d after %d, refused before: %v", hold.Token(), last, refused)
					}
					if err == nil {
						last = hold.Token()
						locktest.MustRelease(t, hold)
						continue
					}
					refused = true
					wantCounterTooHigh(t, err)
					b.WantGone("order:42")
				}
				if wanted := at > 0; refused != wanted || last > 1<<53 {
					t.Errorf("refused: %v, want %v; the last token is %d", refused, wanted, last)
				}
			})
		}
	}
}

func wantCounterTooHigh(t *testing.T, err error) {
	t.Helper()
	locktest.WantErr(t, err, core.ErrUnavailable)
	const why = "the counter of fencing tokens is too high"
	if err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %q", err, why)
	}
	embedded := strings.HasSuffix(t.Name(), "/embedded") // the embedded Redis adds the place in the script
	if text := core.ErrorText(err); !embedded && !strings.Contains(text, why) {
		t.Errorf("the text for logs is only %q", text)
	}
}

// If the counter is too large, the lock is not handed off either. The release succeeds, and the waiter gets the error.
func TestWithToken_CounterTooHighAtAHandOff(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithTokens() {
		locktest.ParallelEachRedis(t, kind.Name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks(locktest.Patient)
			core.LetRunsLast(locks)
			lock := kind.On(locks, "order:42")
			_, hold := locktest.MustAcquire(t, t.Context(), lock, core.WithToken())
			next := locktest.GoAcquire(t.Context(), lock, core.WithToken())
			locktest.AwaitWaiters(t, locks, 1)
			b.Set(t.Context(), locktest.TokenCounterOf("order:42"), 1<<53, 0)
			locktest.MustRelease(t, hold)
			wantCounterTooHigh(t, (<-next).Err)
			b.WantGone("order:42")
		})
	}
}

// Writers re-enter, read inside, and hand the lock off to each other, with or without a token.
func TestReadWrite_Writers(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(locktest.Patient)
		core.LetRunsLast(locks)
		lock := locks.WriteLock("map")
		ctx, w := locktest.MustAcquire(t, t.Context(), lock, core.WithToken())
		inner, again := locktest.MustAcquire(t, ctx, lock)
		_, r := locktest.MustAcquire(t, inner, locks.ReadLock("map"))
		b.WantInside("map", map[string]string{"mode": "write", w.Field(): "2", r.Field(): "1"})
		locktest.MustRelease(t, r)
		locktest.MustRelease(t, again)
		next := locktest.GoAcquire(t.Context(), lock, core.WithToken())
		locktest.AwaitWaiters(t, locks, 1)
		sub := b.SubscribeTo(t, locktest.ReadWriteChannelOf("map"))
		locktest.MustRelease(t, w)
		o := locktest.Got(t, next)
		if o.Hold.Token() <= w.Token() || w.Token() <= 0 {
			t.Errorf("got the tokens %d and %d, want rising tokens", w.Token(), o.Hold.Token())
		}
		b.WantHolders("map", map[string]string{"mode": "write", o.Hold.Field(): "1"})
		locktest.MustRelease(t, o.Hold)
		sub.Want("1") // of the last release only
		b.WantNothing(locktest.TokenCounterOf("map"))
	})
}
