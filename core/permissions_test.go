package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// newRestricted makes a lock client of an ACL user whose rights the test changes.
func newRestricted(b *locktest.Redis) (locks *core.Client, allow func(rules ...any)) {
	b.T.Helper()
	allow = func(rules ...any) {
		b.T.Helper()
		locktest.Must(b.T, b.Do(b.T.Context(), append([]any{"acl", "setuser", "app"}, rules...)...).Err())
	}
	allow("on", ">pw", "~*", "&*", "+@all")
	opts := *b.Client.Options()
	opts.Username, opts.Password = "app", "pw"
	rdb := redis.NewClient(&opts)
	b.T.Cleanup(func() { _ = rdb.Close() })
	return locktest.NewClient(b.T, rdb, locktest.Patient), allow
}

// A user without the right to set a TTL gets no lock, and leaves no lock without a lease behind.
func TestAcquire_TTLForbiddenLeavesNoLock(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, allow := newRestricted(b)
	allow("-pexpire")
	for _, lock := range []core.Lock{locks.Lock("k"), locks.FencedLock("f"), locks.SpinLock("s"), locks.MultiLock("a", "b")} {
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantErr(t, err, core.ErrUnavailable)
		}
	}
	b.WantGone("k", "f", "s", "a", "b")
}

// If the holder loses the right to set a TTL, the lock is not handed off but freed.
func TestRelease_TTLForbiddenFreesInsteadOfHandingOver(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, allow := newRestricted(b)
	core.LetRunsLast(locks)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.FencedLock("k"), core.LeaseTime(time.Minute))
	next := locktest.GoAcquire(t.Context(), locks.FencedLock("k"))
	locktest.AwaitWaiters(t, locks, 1)
	allow("-pexpire")
	locktest.MustRelease(t, hold)
	locktest.WantErr(t, (<-next).Err, core.ErrUnavailable)
	b.WantGone("k")
}
