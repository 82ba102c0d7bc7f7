package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// fairNotes is the hash with when waiters of a fair lock were seen, or found missing.
func fairNotes(key string) string { return locktest.Tagged(key) + ":interlock_seen" }

// diesWaiting has a client wait for a fair lock n times, and its process die.
func dieWaiting(b *locktest.Redis, key string, n int) {
	b.T.Helper()
	proxy, rdb := faultproxy.Around(b.T, b.Client)
	locks := locktest.NewClient(b.T, rdb, locktest.Patient)
	ctx, cancel := context.WithCancel(context.Background())
	b.T.Cleanup(cancel)
	for range n {
		b.JoinQueue(ctx, locks, key)
	}
	locktest.Pass(100 * time.Millisecond)
	proxy.Refuse(true)
	locktest.Pass(time.Second)
}

// wantPassedOver wants the only live waiter to get a fair lock soon that is free now, and to be the
// last one in its queue.
func wantPassedOver(b *locktest.Redis, key string, got <-chan locktest.Outcome, soon time.Duration) {
	b.T.Helper()
	freed := time.Now()
	o := <-got
	locktest.Must(b.T, o.Err)
	if took := time.Since(freed); took > soon {
		b.T.Errorf("the lock was free for %s", took)
	}
	locktest.MustRelease(b.T, o.Hold)
	b.WantNoQueue(key)
}

// refusedOnce wants one attempt to find a lock not to be acquired.
func refusedOnce(t *testing.T, locks *core.Client, key string) {
	t.Helper()
	_, _, err := locks.FairLock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
}

// Waiters have died, and nobody waits behind them: callers come now and then, with one attempt or
// for a short time. The third of them has the lock at the latest, though nobody looked in between.
func TestFair_DeadHeadsAndSeldomCallers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wait, every time.Duration }{
		{0, 1200 * time.Millisecond},
		{0, 2 * time.Second},
		{0, time.Minute},
		{0, 4 * time.Minute},
		{time.Second, 3 * time.Second},
		{1050 * time.Millisecond, 4 * time.Second},
		{1500 * time.Millisecond, 3 * time.Second},
	} {
		for _, dead := range []struct{ ours, threads int }{{1, 0}, {5, 0}, {0, 5}, {3, 2}} {
			locktest.ParallelBubble(t, fmt.Sprint(tt, dead), func(t *testing.T, b *locktest.Redis) {
				_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
				for range dead.threads {
					if taken, _, err := b.NewFairThread("k").Try(t.Context()); taken || err != nil {
						t.Fatal(taken, err)
					}
				}
				dieWaiting(b, "k", dead.ours)
				locktest.MustRelease(t, hold)
				other := b.Locks().FairLock("k")
				for n := 1; ; n++ {
					locktest.Pass(tt.every)
					_, hold, err := other.Acquire(t.Context(), core.WaitTime(tt.wait))
					if err == nil {
						locktest.MustRelease(t, hold)
						b.WantNoQueue("k")
						b.WantGone(fairNotes("k"))
						return
					}
					locktest.WantErr(t, err, core.ErrNotAcquired)
					if n == 3 {
						t.Fatal("the third caller has not got the free lock")
					}
				}
			})
		}
	}
}

// A head has been notified, and nothing moves for long: what it and others send is on its way, as
// when the server is stopped or another takes its place. Who looks first afterwards does not take
// it for dead, and the next one only when it has had the time to look.
func TestFair_NobodyIsDroppedForAStall(t *testing.T) {
	t.Parallel()
	for _, stalls := range []time.Duration{1600 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
		locktest.ParallelBubble(t, fmt.Sprint(stalls), func(t *testing.T, b *locktest.Redis) {
			_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
			proxy, rdb := faultproxy.Around(t, b.Client)
			head, got := b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient, core.WithBackendTimeout(time.Minute)), "k")
			other := b.Locks()
			locktest.Pass(100 * time.Millisecond)
			for range 2 { // the second time with notes of the first
				stopped := proxy.HoldRequest(locktest.Script(t, "fair/acquire"))
				locktest.MustRelease(t, hold)
				locktest.Pass(stalls)
				refusedOnce(t, other, "k")
				locktest.Pass(time.Second)
				refusedOnce(t, other, "k")
				b.WantQueue("k", head)
				stopped.Remove()
				o := <-got
				locktest.Must(t, o.Err)
				if o.Hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.Hold.Field(), head)
				}
				hold = o.Hold
				head, got = b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient, core.WithBackendTimeout(time.Minute)), "k")
				locktest.Pass(100 * time.Millisecond)
			}
			locktest.MustRelease(t, hold)
			o := <-got
			locktest.Must(t, o.Err)
			locktest.MustRelease(t, o.Hold)
			b.WantNoQueue("k")
		})
	}
}

// A waiter that has no channels looks every 0.5 s only. Callers with one attempt, however often
// they come, do not have it passed over.
func TestFair_SeldomLookingHeadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{100 * time.Millisecond, 2 * time.Second} {
		locktest.ParallelBubble(t, fmt.Sprint(every), func(t *testing.T, b *locktest.Redis) {
			other := b.Locks()
			for range 20 {
				b.Take("k", locktest.Stranger, time.Hour)
				proxy, rdb := faultproxy.Around(t, b.Client)
				proxy.HoldRequest(faultproxy.Command("subscribe")) // never answered
				proxy.DelayRequest(locktest.Script(t, "fair/acquire"), 150*time.Millisecond)
				head, got := b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient), "k")
				locktest.Pass(300 * time.Millisecond)
				refusedOnce(t, other, "k")
				b.Del(t.Context(), "k") // without a message
				for b.Exists(t.Context(), "k").Val() == 0 {
					refusedOnce(t, other, "k")
					locktest.Pass(every)
				}
				o := <-got
				locktest.Must(t, o.Err)
				if o.Hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.Hold.Field(), head)
				}
				locktest.MustRelease(t, o.Hold)
				b.WantNoQueue("k")
			}
		})
	}
}

// A thread of Redisson waits, has the lock, and waits again, under one name. Callers with one attempt
// look when it is its turn, whether it listens already or not, and find the lock free each time. That
// it was missing before does not count.
func TestFair_BusyRedissonAndSeldomCallers(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, time.Second, 2 * time.Second, 20 * time.Second} {
		for _, listens := range []bool{true, false} {
			locktest.ParallelBubble(t, fmt.Sprintf("every %s, listens %v", every, listens), func(t *testing.T, b *locktest.Redis) {
				other, j := b.Locks(), b.NewFairThread("k")
				if listens {
					sub := j.Redis.Subscribe(t.Context(), locktest.ChannelOf("k")+":"+j.Field)
					defer func() { _ = sub.Close() }()
					_, err := sub.Receive(t.Context())
					locktest.Must(t, err)
				}
				for range 50 {
					b.Take("k", locktest.Stranger, time.Hour)
					if taken, _, err := j.Try(t.Context()); taken || err != nil {
						t.Fatal(taken, err)
					}
					b.Del(t.Context(), "k")
					refusedOnce(t, other, "k")
					b.WantQueue("k", j.Field)
					if taken, _, err := j.Try(t.Context()); !taken || err != nil {
						t.Fatal(taken, err)
					}
					j.Unlock(t)
					locktest.Pass(every)
				}
			})
		}
	}
}

// The clock of the server goes back after a head was noted as missing: it is passed over soon all the same.
func TestFair_NotesOfTimesToCome(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
		dieWaiting(b, "k", 2)
		later := time.Now().Add(time.Hour).UnixMilli()
		for _, name := range append(b.Queued("k"), "told") {
			locktest.Must(t, b.HSet(t.Context(), fairNotes("k"), name, fmt.Sprintf("%d ", later)).Err())
		}
		_, got := b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.MustRelease(t, hold)
		wantPassedOver(b, "k", got, stall)
	})
}

// Notes are of those in the queue: who has gone leaves none, whatever way he went.
func TestFair_NoNotesOfThoseWhoHaveGone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		gone, left := b.JoinQueue(ctx, b.Locks(), "k")
		late := b.NewFairThread("k")
		late.Wait = -time.Hour.Milliseconds() // its deadline is over
		_, _, err := late.Try(t.Context())
		locktest.Must(t, err)
		_, got := b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		now := time.Now().UnixMilli()
		locktest.Must(t, b.HSet(t.Context(), fairNotes("k"), gone, now, late.Field, now).Err())
		cancel()
		locktest.WantErr(t, (<-left).Err, context.Canceled)
		locktest.Pass(3 * time.Second)
		if notes := b.HKeys(t.Context(), fairNotes("k")).Val(); !slices.Equal(notes, b.Queued("k")) {
			t.Errorf("notes of %v", notes)
		}
		locktest.MustRelease(t, hold)
		o := <-got
		locktest.Must(t, o.Err)
		locktest.MustRelease(t, o.Hold)
		b.WantNoQueue("k")
		b.WantGone(fairNotes("k"))
	})
}

// The queue of one lock, or its deadlines, are of another type. Waiters for another lock leave its
// queue all the same, and what nobody holds is freed.
func TestFair_WrongTypeDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	for _, poisoned := range []string{locktest.FairQueue("a"), locktest.FairDeadlines("a"), fairNotes("a")} {
		locktest.ParallelEachRedis(t, poisoned, func(t *testing.T, b *locktest.Redis) {
			locks, rdb := b.Locks(), b.Client
			b.Take("a", locktest.Stranger, time.Hour)
			b.Take("b", locktest.Stranger, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			_, one := b.JoinQueue(ctx, locks, "a")
			_, two := b.JoinQueue(ctx, locks, "b")
			locktest.Must(t, rdb.Del(t.Context(), poisoned).Err())
			locktest.Must(t, rdb.Set(t.Context(), poisoned, "x", 0).Err())
			cancel()
			<-one
			<-two
			locktest.WithinASecond(t, "nobody queued", func() bool { return len(b.Queued("a"))+len(b.Queued("b")) == 0 })
			b.WantQueue("b")
		})
	}
}
