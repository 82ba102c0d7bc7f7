package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// A reader cannot become a writer, since another one may want the same: that is said at once.
func TestReadWrite_UpgradeFailsFast(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		reading, r := acquired(t, t.Context(), locks.ReadLock("map"))
		before := sent.Hits()
		for _, wait := range []time.Duration{0, time.Hour} {
			_, _, err := locks.WriteLock("map").Acquire(reading, core.WaitTime(wait))
			wantErr(t, err, core.ErrInvalid)
		}
		wantSame(t, "scripts", sent.Hits()-before, 0)
		wantAlive(t, reading)
		released(t, r)
		b.wantNothing()
	})
}

// Readers of a client have the lock together, by a holder each; a re-entry is the same holder.
func TestReadWrite_ReadersOfOneClient(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		lock := locks.ReadLock("map")
		ctx, one := acquired(t, t.Context(), lock)
		_, again := acquired(t, ctx, lock)
		_, two := acquired(t, t.Context(), lock)
		b.wantHolders("map", map[string]string{"mode": "read", one.Field(): "2", two.Field(): "1"})
		state, err := lock.State(t.Context())
		must(t, err)
		if len(state.Holders) != 2 || state.Holders[one.Field()] != 2 || state.TTL <= 0 {
			t.Errorf("state: got %+v", state)
		}
		released(t, again)
		released(t, one)
		wantErr(t, one.Release(t.Context()), core.ErrNotHeld)
		b.wantHolders("map", map[string]string{"mode": "read", two.Field(): "1"})
		released(t, two)
		b.wantNothing()
	})
}

// Writers re-enter, read inside, and hand the lock on to each other; with a token if they like.
func TestReadWrite_Writers(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks(patient)
		core.LetRunsLast(locks)
		lock := locks.WriteLock("map")
		ctx, w := acquired(t, t.Context(), lock, core.WithToken())
		inner, again := acquired(t, ctx, lock)
		_, r := acquired(t, inner, locks.ReadLock("map"))
		b.wantInside("map", map[string]string{"mode": "write", w.Field(): "2", r.Field(): "1"})
		released(t, r)
		released(t, again)
		next := acquiring(t.Context(), lock, core.WithToken())
		waiters(t, locks, 1)
		sub := b.subscribe(t, rwChannelOf("map"))
		released(t, w)
		o := got(t, next)
		if o.hold.Token() <= w.Token() || w.Token() <= 0 {
			t.Errorf("tokens %d and %d", w.Token(), o.hold.Token())
		}
		b.wantHolders("map", map[string]string{"mode": "write", o.hold.Field(): "1"})
		released(t, o.hold)
		sub.want("1") // of the last one only
		b.wantNothing("redisson_lock_token:{map}")
	})
}

// Only the holders of a kind are forced away, with all that they have left beside the lock.
func TestReadWrite_ForceRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		force := func(lock core.Lock, want bool) {
			t.Helper()
			freed, err := lock.ForceRelease(t.Context())
			must(t, err)
			if freed != want {
				t.Errorf("freed: %v, want %v", freed, want)
			}
		}
		one, _ := acquired(t, t.Context(), locks.ReadLock("map"))
		two, _ := acquired(t, t.Context(), b.locks().ReadLock("map"))
		force(locks.WriteLock("map"), false)
		force(locks.ReadLock("map"), true)
		b.wantNothing()
		pass(11 * time.Second)
		wantEnded(t, one, core.ErrLost)
		wantEnded(t, two, core.ErrLost)
		writing, _ := acquired(t, t.Context(), locks.WriteLock("map"))
		force(locks.ReadLock("map"), false)
		force(locks.WriteLock("map"), true)
		pass(11 * time.Second)
		wantEnded(t, writing, core.ErrLost)
		b.wantNothing()
		_, plain := acquired(t, t.Context(), b.locks().Lock("map"))
		_, err := locks.ReadLock("map").ForceRelease(t.Context())
		wantErr(t, err, core.ErrUnavailable)
		released(t, plain)
	})
}

// A plain lock is in the way of both.
func TestReadWrite_PlainLockIsInTheWay(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("map", stranger, time.Minute)
		locks := b.locks()
		for _, lock := range []core.Lock{locks.ReadLock("map"), locks.WriteLock("map")} {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(0))
			if e := notAcquired(t, err); e.BlockedBy != stranger || e.RetryAfter < 50*time.Second {
				t.Errorf("got %+v", e)
			}
		}
		b.wantHolders("map", map[string]string{stranger: "1"})
	})
}

// Refresh and Leave are of one's own lease; that of others stays.
func TestReadWrite_RefreshAndLeave(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, one := acquired(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Hour))
		_, two := acquired(t, t.Context(), locks.ReadLock("map"), core.LeaseTime(time.Minute))
		must(t, one.Refresh(t.Context(), 30*time.Second))
		b.wantTTL("map", 59*time.Second, time.Minute)
		must(t, two.Leave(t.Context(), 10*time.Second))
		b.wantTTL("map", 29*time.Second, 30*time.Second)
		released(t, one)
		b.wantTTL("map", 9*time.Second, 10*time.Second)
		_, _, err := locks.WriteLock("map").Acquire(t.Context(), core.WaitTime(5*time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(time.Hour))
		_, r := acquired(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Minute))
		must(t, w.Refresh(t.Context(), 10*time.Second))
		b.wantTTL("map", 59*time.Second, time.Minute)
		_, r = r.Handover()
		must(t, w.Leave(t.Context(), 2*time.Second))
		b.wantTTL("map", 59*time.Second, time.Minute) // its own reader is there
		released(t, r)
		pass(time.Minute)
		b.wantNothing()
	})
}

// A reader whose timeout key is gone is lost: who has seen that may have taken the lock.
func TestReadWrite_DeletedTimeoutKeyIsALoss(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		one, hold := acquired(t, t.Context(), locks.ReadLock("map"))
		two, other := acquired(t, t.Context(), locks.ReadLock("map"))
		b.Del(t.Context(), timeoutOf("map", hold.Field(), "1"))
		pass(11 * time.Second)
		wantEnded(t, one, core.ErrLost)
		wantAlive(t, two)
		if b.Exists(t.Context(), timeoutOf("map", hold.Field(), "1")).Val() != 0 {
			t.Error("the key was made again")
		}
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		released(t, other)
		b.wantNothing()
	})
}

// A writer that waits keeps readers of other processes out that come after it, and has its turn
// though there is always somebody who wants to read.
func TestReadWrite_WriterDoesNotStarve(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, stop := context.WithCancel(t.Context())
		const readers = 12
		ended := make(chan struct{}, readers)
		for i := range readers {
			lock := b.locks().ReadLock("map")
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
		pass(time.Second)
		locks := b.locks()
		for range 10 {
			start := time.Now()
			_, hold := acquired(t, ctx, locks.WriteLock("map"), core.WaitTime(10*time.Second))
			wantSoon(t, "the writer waited %s beside readers of 100ms", start, 500*time.Millisecond)
			_, _, err := b.locks().ReadLock("map").Acquire(ctx, core.WaitTime(0))
			wantErr(t, err, core.ErrNotAcquired)
			released(t, hold)
			pass(300 * time.Millisecond)
		}
		stop()
		for range readers {
			<-ended
		}
	})
}
