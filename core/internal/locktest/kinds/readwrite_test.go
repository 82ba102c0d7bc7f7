package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A reader cannot become a writer, because two readers that upgrade would wait for each other for ever. The error comes at
// once.
func TestReadWrite_UpgradeFailsFast(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		reading, r := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"))
		before := sent.Hits()
		for _, wait := range []time.Duration{0, time.Hour} {
			_, _, err := locks.WriteLock("map").Acquire(reading, core.WaitTime(wait))
			locktest.WantErr(t, err, core.ErrInvalid)
		}
		locktest.WantSame(t, "scripts", sent.Hits()-before, 0)
		locktest.WantAlive(t, reading)
		locktest.MustRelease(t, r)
		b.WantNothing()
	})
}

// Several readers of a client hold the lock, each as a separate holder. A re-entry is the same holder.
func TestReadWrite_ReadersOfOneClient(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		lock := locks.ReadLock("map")
		ctx, one := locktest.MustAcquire(t, t.Context(), lock)
		_, again := locktest.MustAcquire(t, ctx, lock)
		_, two := locktest.MustAcquire(t, t.Context(), lock)
		b.WantHolders("map", map[string]string{"mode": "read", one.Field(): "2", two.Field(): "1"})
		state, err := lock.State(t.Context())
		locktest.Must(t, err)
		if len(state.Holders) != 2 || state.Holders[one.Field()] != 2 || state.TTL <= 0 {
			t.Errorf("state: got %+v", state)
		}
		locktest.MustRelease(t, again)
		locktest.MustRelease(t, one)
		locktest.WantErr(t, one.Release(t.Context()), core.ErrNotHeld)
		b.WantHolders("map", map[string]string{"mode": "read", two.Field(): "1"})
		locktest.MustRelease(t, two)
		b.WantNothing()
	})
}

// ForceRelease takes the lock only from holders of its kind and also removes the timeout keys of the readers.
func TestReadWrite_ForceRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		force := func(lock core.Lock, want bool) {
			t.Helper()
			freed, err := lock.ForceRelease(t.Context())
			locktest.Must(t, err)
			if freed != want {
				t.Errorf("freed: %v, want %v", freed, want)
			}
		}
		one, _ := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"))
		two, _ := locktest.MustAcquire(t, t.Context(), b.Locks().ReadLock("map"))
		force(locks.WriteLock("map"), false)
		force(locks.ReadLock("map"), true)
		b.WantNothing()
		locktest.Pass(11 * time.Second)
		locktest.WantEnded(t, one, core.ErrLost)
		locktest.WantEnded(t, two, core.ErrLost)
		writing, _ := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		force(locks.ReadLock("map"), false)
		force(locks.WriteLock("map"), true)
		locktest.Pass(11 * time.Second)
		locktest.WantEnded(t, writing, core.ErrLost)
		b.WantNothing()
		_, plain := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("map"))
		_, err := locks.ReadLock("map").ForceRelease(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		locktest.MustRelease(t, plain)
	})
}

// A plain lock of the same name excludes readers and writers.
func TestReadWrite_PlainLockExcludes(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("map", locktest.Stranger, time.Minute)
		locks := b.Locks()
		for _, lock := range []core.Lock{locks.ReadLock("map"), locks.WriteLock("map")} {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(0))
			if e := locktest.NotAcquired(t, err); e.BlockedBy != locktest.Stranger || e.RetryAfter < 50*time.Second {
				t.Errorf("got %+v", e)
			}
		}
		b.WantHolders("map", map[string]string{locktest.Stranger: "1"})
	})
}

// Refresh and Leave change only the lease of their hold, not the leases of other holds.
func TestReadWrite_RefreshAndLeave(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, one := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		_, two := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Minute))
		locktest.Must(t, one.Refresh(t.Context(), 30*time.Second))
		b.WantTTL("map", 59*time.Second, time.Minute)
		locktest.Must(t, two.Leave(t.Context(), 10*time.Second))
		b.WantTTL("map", 29*time.Second, 30*time.Second)
		locktest.MustRelease(t, one)
		b.WantTTL("map", 9*time.Second, 10*time.Second)
		_, _, err := locks.WriteLock("map").Acquire(t.Context(), core.WaitTime(5*time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(time.Hour))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Minute))
		locktest.Must(t, w.Refresh(t.Context(), 10*time.Second))
		b.WantTTL("map", 59*time.Second, time.Minute)
		_, r = r.Handover()
		locktest.Must(t, w.Leave(t.Context(), 2*time.Second))
		b.WantTTL("map", 59*time.Second, time.Minute) // the inner reader still holds the lock
		locktest.MustRelease(t, r)
		locktest.Pass(time.Minute)
		b.WantNothing()
	})
}

// A reader whose timeout key is gone has lost its lock, because another client may have seen that the key is missing
// and taken the lock.
func TestReadWrite_DeletedTimeoutKeyIsALoss(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		one, hold := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"))
		two, other := locktest.MustAcquire(t, t.Context(), locks.ReadLock("map"))
		b.Del(t.Context(), locktest.ReaderTimeoutOf("map", hold.Field(), "1"))
		locktest.Pass(11 * time.Second)
		locktest.WantEnded(t, one, core.ErrLost)
		locktest.WantAlive(t, two)
		if b.Exists(t.Context(), locktest.ReaderTimeoutOf("map", hold.Field(), "1")).Val() != 0 {
			t.Error("the timeout key exists again")
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.MustRelease(t, other)
		b.WantNothing()
	})
}

// A waiting writer excludes later readers of other processes and has its turn although readers always want the lock.
func TestReadWrite_WriterDoesNotStarve(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, stop := context.WithCancel(t.Context())
		const readers = 12
		ended := make(chan struct{}, readers)
		for i := range readers {
			lock := b.Locks().ReadLock("map")
			go func() {
				defer func() { ended <- struct{}{} }()
				<-time.NewTimer(time.Duration(i) * 10 * time.Millisecond).C
				for ctx.Err() == nil {
					_ = lock.Do(ctx, func(context.Context) error {
						<-time.NewTimer(100 * time.Millisecond).C
						return nil
					})
				}
			}()
		}
		locktest.Pass(time.Second)
		locks := b.Locks()
		for range 10 {
			start := time.Now()
			_, hold := locktest.MustAcquire(t, ctx, locks.WriteLock("map"), core.WaitTime(10*time.Second))
			locktest.WantSoon(t, "the writer waited %s although each reader holds the lock for only 100ms", start, 500*time.Millisecond)
			_, _, err := b.Locks().ReadLock("map").Acquire(ctx, core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			locktest.MustRelease(t, hold)
			locktest.Pass(300 * time.Millisecond)
		}
		stop()
		for range readers {
			<-ended
		}
	})
}
