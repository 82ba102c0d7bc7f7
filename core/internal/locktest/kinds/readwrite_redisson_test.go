package kinds_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Readers of both libraries share the lock. After the last reader, a writer of the other library gets it, and nothing
// is left.
func TestReadWrite_WithRedisson(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"map", "{t}:map", "größe"} {
		locktest.ParallelEachRedis(t, key, func(t *testing.T, b *locktest.Redis) {
			java, other := b.NewReadWriteThread("57"), b.NewReadWriteThread("58")
			locks := b.Locks()
			if !java.Reads(key, time.Minute) {
				t.Fatal("Redisson was refused a free lock")
			}
			_, ours := locktest.MustAcquire(t, t.Context(), locks.ReadLock(key))
			if !other.Reads(key, time.Minute) || other.Writes(key, time.Minute) {
				t.Error("Redisson does not see a reader of this library")
			}
			b.WantHolders(key, map[string]string{"mode": "read", java.Field: "1", other.Field: "1", ours.Field(): "1"})
			other.Unlocks(locktest.RedissonReadUnlock, key, 0)

			writing := locktest.GoAcquire(t.Context(), locks.WriteLock(key))
			locktest.AwaitWaiters(t, locks, 1)
			b.AwaitReadWriteListener(key)
			locktest.MustRelease(t, ours)
			java.Unlocks(locktest.RedissonReadUnlock, key, 1)
			w := locktest.Got(t, writing)
			b.WantHolders(key, map[string]string{"mode": "write", w.Hold.Field(): "1"})
			if java.Reads(key, time.Minute) || java.Writes(key, time.Minute) {
				t.Error("Redisson does not see a writer of this library")
			}
			sub := b.SubscribeTo(t, locktest.ReadWriteChannelOf(key))
			locktest.MustRelease(t, w.Hold)
			sub.Want("1")

			if !java.Writes(key, time.Minute) {
				t.Error("Redisson was refused a free lock")
			}
			reading := locktest.GoAcquire(t.Context(), locks.ReadLock(key))
			locktest.AwaitWaiters(t, locks, 1)
			b.AwaitReadWriteListener(key)
			java.Unlocks(locktest.RedissonWriteUnlock, key, 1)
			r := locktest.Got(t, reading)
			if !java.Reads(key, time.Minute) {
				t.Error("Redisson does not share with a reader of this library")
			}
			java.Unlocks(locktest.RedissonReadUnlock, key, 0)
			locktest.MustRelease(t, r.Hold)
			sub.Want("1", "0")
			b.WantNothing()
		})
	}
}

// When a reader of Redisson unlocks, it computes the TTL of the lock from the timeout keys. It sees the leases of all
// holds of the readers of this library, even after renewals.
func TestReadWrite_RedissonSeesOurLeases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		java := b.NewReadWriteThread("57")
		lock := b.Locks().ReadLock("map")
		ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(20*time.Minute))
		if !java.Reads("map", time.Hour) {
			t.Fatal("Redisson was refused a free lock")
		}
		b.WantTTL("map", 50*time.Minute, time.Hour)
		_, inner := locktest.MustAcquire(t, ctx, lock, core.LeaseTime(30*time.Minute))
		java.Unlocks(locktest.RedissonReadUnlock, "map", 0)
		b.WantTTL("map", 29*time.Minute, 30*time.Minute)
		b.WantHolders("map", map[string]string{"mode": "read", hold.Field(): "2"})
		for _, n := range []string{"1", "2"} {
			b.WantTTL(locktest.ReaderTimeoutOf("map", hold.Field(), n), 29*time.Minute, 30*time.Minute)
		}
		locktest.MustRelease(t, inner)
		b.WantNothing("map", locktest.ReaderTimeoutOf("map", hold.Field(), "1"))
		if !java.Reads("map", time.Hour) {
			t.Fatal("Redisson was refused a free lock")
		}
		locktest.MustRelease(t, hold) // the remaining hold counts
		b.WantTTL("map", 50*time.Minute, time.Hour)
		java.Unlocks(locktest.RedissonReadUnlock, "map", 1)
		b.WantNothing()
	})
}

// A reader that has crashed does not exclude writers of either library for longer than its lease, although other
// readers have used the lock since. For a crashed reader of this library this is true even if the hash lasts longer.
func TestReadWrite_CrashedReader(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		dead := b.NewReadWriteThread("57")
		locks := b.Locks()
		_, ours := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		if !dead.Reads("map", 10*time.Second) {
			t.Fatal("Redisson was refused a free lock")
		}
		writing := locktest.GoAcquire(t.Context(), locks.WriteLock("map"))
		locktest.Pass(5 * time.Second)
		locktest.MustRelease(t, ours)
		start := time.Now()
		w := locktest.Got(t, writing)
		locktest.WantSoon(t, "the writer waited %s", start, 6*time.Second)
		locktest.MustRelease(t, w.Hold)
		b.WantNothing()

		// A crashed reader of this library does not count although the lock lasts.
		crashed := locks.ID() + ":1099511628776"
		b.HSet(t.Context(), "map", "mode", "read", crashed, 1)
		b.PExpire(t.Context(), "map", time.Hour)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.WaitTime(0))
		locktest.MustRelease(t, hold)
		b.WantNothing()
	})
}

// Redisson 3.44 to 4.3 renews the hashes of all read locks of a client, but the timeout keys of only the first. So a
// reader of Redisson without timeout keys may be alive. It excludes writers while the hash exists. After the readers of
// this library have released, this is at most half a minute.
func TestReadWrite_RedissonWithoutItsTimeoutKeys(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		java, locks := b.NewReadWriteThread("57"), b.Locks()
		if !java.Reads("map", 10*time.Second) {
			t.Fatal("Redisson was refused a free lock")
		}
		b.PExpire(t.Context(), "map", 20*time.Second)
		locktest.Pass(11 * time.Second)
		_, _, err := locks.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if st, err := locks.ReadLock("map").State(t.Context()); err != nil || st.Holders[java.Field] != 1 {
			t.Errorf("State: got %v, %v, want the reader of Redisson", st, err)
		}

		_, ours := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		locktest.MustRelease(t, ours)
		b.WantHolders("map", map[string]string{"mode": "read", java.Field: "1"})
		b.WantTTL("map", 29*time.Second, 30*time.Second)
		writing := locktest.GoAcquire(t.Context(), locks.WriteLock("map"))
		locktest.Pass(20 * time.Second)
		java.Unlocks(locktest.RedissonReadUnlock, "map", 1) // because the reader is alive
		locktest.MustRelease(t, locktest.Got(t, writing).Hold)
		b.WantNothing()
	})
}

// A writer that goes on as a reader admits waiting readers of both libraries, and no writers.
func TestReadWrite_Downgrade(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		java, locks, others := b.NewReadWriteThread("57"), b.Locks(), b.Locks()
		sub := b.SubscribeTo(t, locktest.ReadWriteChannelOf("map"))
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), core.WaitTime(0))
		b.WantInside("map", map[string]string{"mode": "write", w.Field(): "1", r.Field(): "1"})
		waiting := locktest.GoAcquire(t.Context(), others.ReadLock("map"))
		locktest.AwaitWaiters(t, others, 1)
		reading, r := r.Handover()
		locktest.MustRelease(t, w)
		sub.Want("1")
		locktest.WantAlive(t, reading)
		locktest.WantEnded(t, writing, core.ErrReleased)
		other := locktest.Got(t, waiting)
		b.WantHolders("map", map[string]string{"mode": "read", r.Field(): "1", other.Hold.Field(): "1"})
		if !java.Reads("map", time.Minute) || java.Writes("map", time.Minute) {
			t.Error("Redisson is refused although there are only readers")
		}
		_, _, err := others.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		java.Unlocks(locktest.RedissonReadUnlock, "map", 0)
		locktest.MustRelease(t, other.Hold)
		locktest.MustRelease(t, r)
		sub.Want("0")
		b.WantNothing()

		// Redisson's downgrade sends no message: waiters learn of it by polling.
		if !java.Writes("map", time.Minute) || !java.Reads("map", time.Minute) {
			t.Fatal("Redisson was refused a free lock")
		}
		waiting = locktest.GoAcquire(t.Context(), others.ReadLock("map"))
		locktest.AwaitWaiters(t, others, 1)
		java.Unlocks(locktest.RedissonWriteUnlock, "map", 1)
		other = locktest.Got(t, waiting)
		java.Unlocks(locktest.RedissonReadUnlock, "map", 0)
		locktest.MustRelease(t, other.Hold)
		b.WantNothing()
	})
}

// Neither an inner read lock nor its write lock shortens the lease of the other, and both are renewed.
func TestReadWrite_LeasesOfWriterAndInnerReader(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		_, short := locktest.MustAcquire(t, writing, locks.ReadLock("map"), core.LeaseTime(2*time.Second))
		b.WantTTL("map", 29*time.Second, 30*time.Second)
		locktest.MustRelease(t, short)
		b.WantTTL("map", 29*time.Second, 30*time.Second)
		readingCtx, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"))
		locktest.Pass(2 * time.Minute)
		locktest.WantAlive(t, readingCtx)
		b.WantTTL("map", 19*time.Second, 30*time.Second)
		b.WantTTL(locktest.ReaderTimeoutOf("map", r.Field(), "1"), 19*time.Second, 30*time.Second)
		locktest.MustRelease(t, r)
		locktest.Pass(2 * time.Minute)
		locktest.WantAlive(t, writing)
		b.WantHolders("map", map[string]string{"mode": "write", w.Field(): "1"})
		locktest.MustRelease(t, w)
		b.WantNothing()
	})
}
