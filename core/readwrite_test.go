package core_test

import (
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

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
			t.Errorf("tokens %d and %d", w.Token(), o.Hold.Token())
		}
		b.WantHolders("map", map[string]string{"mode": "write", o.Hold.Field(): "1"})
		locktest.MustRelease(t, o.Hold)
		sub.Want("1") // of the last release only
		b.WantNothing("redisson_lock_token:{map}")
	})
}
