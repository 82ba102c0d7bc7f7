package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Readers of either library share the lock; the last one, of either, has a writer of the other
// have it, and leaves nothing.
func TestReadWrite_WithRedisson(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"map", "{t}:map", "größe"} {
		parallelBeds(t, key, func(t *testing.T, b *bed) {
			java, other := b.thread("57"), b.thread("58")
			locks := b.locks()
			if !java.reads(key, time.Minute) {
				t.Fatal("Redisson was refused a free lock")
			}
			_, ours := acquired(t, t.Context(), locks.ReadLock(key))
			if !other.reads(key, time.Minute) || other.writes(key, time.Minute) {
				t.Error("Redisson does not see a reader of ours")
			}
			b.wantHolders(key, map[string]string{"mode": "read", java.field: "1", other.field: "1", ours.Field(): "1"})
			other.unlocks(redissonReadUnlock, key, 0)

			writing := acquiring(t.Context(), locks.WriteLock(key))
			waiters(t, locks, 1)
			b.rwListeners(key)
			released(t, ours)
			java.unlocks(redissonReadUnlock, key, 1)
			w := got(t, writing)
			b.wantHolders(key, map[string]string{"mode": "write", w.hold.Field(): "1"})
			if java.reads(key, time.Minute) || java.writes(key, time.Minute) {
				t.Error("Redisson does not see a writer of ours")
			}
			sub := b.subscribe(t, rwChannelOf(key))
			released(t, w.hold)
			sub.want("1")

			if !java.writes(key, time.Minute) {
				t.Error("Redisson was refused a free lock")
			}
			reading := acquiring(t.Context(), locks.ReadLock(key))
			waiters(t, locks, 1)
			b.rwListeners(key)
			java.unlocks(redissonWriteUnlock, key, 1)
			r := got(t, reading)
			if !java.reads(key, time.Minute) {
				t.Error("Redisson does not share with a reader of ours")
			}
			java.unlocks(redissonReadUnlock, key, 0)
			released(t, r.hold)
			sub.want("1", "0")
			b.wantNothing()
		})
	}
}

// What Redisson computes from the timeout keys when one of its readers unlocks lets ours live,
// with all holds, and lets go of none that was renewed.
func TestReadWrite_RedissonSeesOurLeases(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		java := b.thread("57")
		lock := b.locks().ReadLock("map")
		ctx, hold := acquired(t, t.Context(), lock, core.LeaseTime(20*time.Minute))
		if !java.reads("map", time.Hour) {
			t.Fatal("refused")
		}
		b.wantTTL("map", 50*time.Minute, time.Hour)
		_, inner := acquired(t, ctx, lock, core.LeaseTime(30*time.Minute))
		java.unlocks(redissonReadUnlock, "map", 0)
		b.wantTTL("map", 29*time.Minute, 30*time.Minute)
		b.wantHolders("map", map[string]string{"mode": "read", hold.Field(): "2"})
		for _, n := range []string{"1", "2"} {
			b.wantTTL(timeoutOf("map", hold.Field(), n), 29*time.Minute, 30*time.Minute)
		}
		released(t, inner)
		b.wantNothing("map", timeoutOf("map", hold.Field(), "1"))
		if !java.reads("map", time.Hour) {
			t.Fatal("refused")
		}
		released(t, hold) // the one that is left counts
		b.wantTTL("map", 50*time.Minute, time.Hour)
		java.unlocks(redissonReadUnlock, "map", 1)
		b.wantNothing()
	})
}

// A reader that has crashed keeps a writer of neither library out for longer than its lease,
// though others have used the lock since; one of ours does not even if the hash lasts.
func TestReadWrite_CrashedReader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		dead := b.thread("57")
		locks := b.locks()
		_, ours := acquired(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		if !dead.reads("map", 10*time.Second) {
			t.Fatal("refused")
		}
		writing := acquiring(t.Context(), locks.WriteLock("map"))
		pass(5 * time.Second)
		released(t, ours)
		start := time.Now()
		w := got(t, writing)
		wantSoon(t, "the writer waited %s", start, 6*time.Second)
		released(t, w.hold)
		b.wantNothing()

		// One of ours that has crashed is out, though the lock lasts.
		crashed := locks.ID() + ":1099511628776"
		b.HSet(t.Context(), "map", "mode", "read", crashed, 1)
		b.PExpire(t.Context(), "map", time.Hour)
		_, hold := acquired(t, t.Context(), locks.WriteLock("map"), core.WaitTime(0))
		released(t, hold)
		b.wantNothing()
	})
}

// Of several locks that one client reads, Redisson 3.44 to 4.3 renews the timeout keys of the first one
// only; of the others, the hash. So a reader of Redisson without its keys may be there: it keeps writers
// out as long as the hash lasts, and for half a minute at most after ours have gone.
func TestReadWrite_RedissonWithoutItsTimeoutKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		java, locks := b.thread("57"), b.locks()
		if !java.reads("map", 10*time.Second) {
			t.Fatal("refused")
		}
		b.PExpire(t.Context(), "map", 20*time.Second)
		pass(11 * time.Second)
		_, _, err := locks.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		if st, err := locks.ReadLock("map").State(t.Context()); err != nil || st.Holders[java.field] != 1 {
			t.Errorf("State: got %v, %v, want the reader of Redisson", st, err)
		}

		_, ours := acquired(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		released(t, ours)
		b.wantHolders("map", map[string]string{"mode": "read", java.field: "1"})
		b.wantTTL("map", 29*time.Second, 30*time.Second)
		writing := acquiring(t.Context(), locks.WriteLock("map"))
		pass(20 * time.Second)
		java.unlocks(redissonReadUnlock, "map", 1) // as it lives
		released(t, got(t, writing).hold)
		b.wantNothing()
	})
}

// A writer that goes on as a reader lets in readers that wait, of either library, and no writers.
func TestReadWrite_Downgrade(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		java, locks, others := b.thread("57"), b.locks(), b.locks()
		sub := b.subscribe(t, rwChannelOf("map"))
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
		_, r := acquired(t, writing, locks.ReadLock("map"), core.WaitTime(0))
		b.wantInside("map", map[string]string{"mode": "write", w.Field(): "1", r.Field(): "1"})
		waiting := acquiring(t.Context(), others.ReadLock("map"))
		waiters(t, others, 1)
		reading, r := r.Handover()
		released(t, w)
		sub.want("1")
		wantAlive(t, reading)
		wantEnded(t, writing, core.ErrReleased)
		other := got(t, waiting)
		b.wantHolders("map", map[string]string{"mode": "read", r.Field(): "1", other.hold.Field(): "1"})
		if !java.reads("map", time.Minute) || java.writes("map", time.Minute) {
			t.Error("Redisson does not see readers only")
		}
		_, _, err := others.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		java.unlocks(redissonReadUnlock, "map", 0)
		released(t, other.hold)
		released(t, r)
		sub.want("0")
		b.wantNothing()

		// Redisson's downgrade publishes nothing: who waits finds out by its poll.
		if !java.writes("map", time.Minute) || !java.reads("map", time.Minute) {
			t.Fatal("refused")
		}
		waiting = acquiring(t.Context(), others.ReadLock("map"))
		waiters(t, others, 1)
		java.unlocks(redissonWriteUnlock, "map", 1)
		other = got(t, waiting)
		java.unlocks(redissonReadUnlock, "map", 0)
		released(t, other.hold)
		b.wantNothing()
	})
}

// An inner read lock never shortens the write lock, nor the other way round, and both are renewed.
func TestReadWrite_InnerReaderAndWriterHaveLeasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
		_, short := acquired(t, writing, locks.ReadLock("map"), core.LeaseTime(2*time.Second))
		b.wantTTL("map", 29*time.Second, 30*time.Second)
		released(t, short)
		b.wantTTL("map", 29*time.Second, 30*time.Second)
		readingCtx, r := acquired(t, writing, locks.ReadLock("map"))
		pass(2 * time.Minute)
		wantAlive(t, readingCtx)
		b.wantTTL("map", 19*time.Second, 30*time.Second)
		b.wantTTL(timeoutOf("map", r.Field(), "1"), 19*time.Second, 30*time.Second)
		released(t, r)
		pass(2 * time.Minute)
		wantAlive(t, writing)
		b.wantHolders("map", map[string]string{"mode": "write", w.Field(): "1"})
		released(t, w)
		b.wantNothing()
	})
}
