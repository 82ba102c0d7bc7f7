package kinds_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// A fair lock without waiters has no key but its hash.
func TestFair_Uncontended(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		locktest.WantSame(t, "scripts", locktest.Fewest(sent, func() {
			for _, key := range []string{"k", "order:{42}"} {
				ctx, hold := locktest.MustAcquire(t, t.Context(), locks.FairLock(key), core.LeaseTime(time.Minute))
				b.WantCount(hold, "1")
				b.WantTTL(key, core.DefaultWatchdog, time.Minute)
				b.WantQueue(key)
				_, inner := locktest.MustAcquire(t, ctx, locks.FairLock(key))
				b.WantCount(hold, "2")
				locktest.MustRelease(t, inner)
				locktest.MustRelease(t, hold)
				b.WantGone(key, locktest.FairQueue(key), locktest.FairDeadlines(key))
			}
		}), 8)
	})
}

// Deadlines are like Redisson's: each waiter adds its allowance to the deadline of the waiter before it, and
// subtracts it from later deadlines when it leaves.
func TestFair_DeadlinesAreRedissons(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		j0, j1, j3 := b.NewFairThread("k"), b.NewFairThread("k"), b.NewFairThread("k")
		if taken, _, err := j0.Try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		start := time.Now()
		want := func(field string, after time.Duration) {
			t.Helper()
			if got := b.QueueDeadline("k", field).Sub(start); got < after-10*time.Millisecond || got > after+10*time.Millisecond {
				t.Errorf("the deadline of %s is in %s, want %s", field, got, after)
			}
		}
		if _, ttl, err := j1.Try(t.Context()); ttl != 30*time.Second || err != nil {
			t.Errorf("answer %s, %v", ttl, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f2, got2 := b.JoinQueue(ctx, locks, "k")
		if _, ttl, err := j3.Try(t.Context()); ttl.Round(time.Second) != 630*time.Second || err != nil {
			t.Errorf("answer %s, %v", ttl, err)
		}
		f4, got4 := b.JoinQueue(t.Context(), locks, "k")
		want(j1.Field, 330*time.Second)
		want(f2, 630*time.Second)
		want(j3.Field, 930*time.Second)
		want(f4, 1230*time.Second)
		b.WantQueue("k", j1.Field, f2, j3.Field, f4)

		cancel() // a waiter that gives up subtracts its allowance from later deadlines
		locktest.WantErr(t, (<-got2).Err, context.Canceled)
		locktest.Eventually(t, "gone", func() bool { return len(b.Queued("k")) == 3 })
		b.WantQueue("k", j1.Field, j3.Field, f4)
		want(j1.Field, 330*time.Second)
		want(j3.Field, 630*time.Second)
		want(f4, 930*time.Second)

		j0.Unlock(t)
		if taken, _, err := j1.Try(t.Context()); !taken || err != nil { // Redisson acquires and subtracts its allowance
			t.Fatal(taken, err)
		}
		want(j3.Field, 330*time.Second)
		want(f4, 630*time.Second)
		j3.GiveUp(t)
		want(f4, 330*time.Second)
		f5, got5 := b.JoinQueue(t.Context(), locks, "k")
		want(f5, 630*time.Second)
		j1.Unlock(t)
		first := locktest.Got(t, got4)
		b.WantQueue("k", f5)
		want(f5, 330*time.Second) // we acquire and subtract our allowance
		if first.Hold.Field() != f4 {
			t.Errorf("the holder is %s, want %s", first.Hold.Field(), f4)
		}
		locktest.MustRelease(t, first.Hold)
		locktest.MustRelease(t, locktest.Got(t, got5).Hold)
		b.WantNoQueue("k")
	})
}

// A waiter that waits for a long time moves its deadline into the future, and keeps its place.
func TestFair_WaitersOutliveTheirDeadline(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks := b.Locks()
		one, got1 := b.JoinQueue(t.Context(), locks, "k")
		two, got2 := b.JoinQueue(t.Context(), b.Locks(), "k")
		b.ZAdd(t.Context(), locktest.FairDeadlines("k"), redisZ(one, time.Now().Add(time.Second)), redisZ(two, time.Now().Add(2*time.Second)))
		locktest.Pass(time.Minute)
		b.WantQueue("k", one, two)
		if d := time.Until(b.QueueDeadline("k", two)); d < 598*time.Second || d > 600*time.Second {
			t.Errorf("the deadline of the second waiter is in %s, want 598s to 600s", d)
		}
		if ttl := b.TTL(t.Context(), locktest.FairQueue("k")).Val(); ttl < 24*time.Hour {
			t.Errorf("the queue ends in %s, want at least 24h", ttl)
		}
		b.Free("k")
		locktest.MustRelease(t, locktest.Got(t, got1).Hold)
		locktest.MustRelease(t, locktest.Got(t, got2).Hold)
		b.WantNoQueue("k")
	})
}

// 50 waiters of 5 clients, two of which are Redisson, get the lock in the order in which they came.
func TestFair_OrderOfArrival(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		const callers = 50
		clients := []*core.Client{b.Locks(locktest.Patient), b.Locks(locktest.Patient), b.Locks(locktest.Patient)}
		b.Take("k", locktest.Stranger, time.Hour)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		record := func(i int) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		}
		for i := range callers {
			all.Go(func() {
				if c := i % 5; c < len(clients) {
					err := clients[c].FairLock("k").Do(context.Background(), func(context.Context) error {
						record(i)
						return nil
					})
					locktest.WantOK(t, err)
					return
				}
				j := b.NewFairThread("k")
				if err := j.Lock(context.Background()); err != nil {
					t.Error(err)
					return
				}
				record(i)
				j.Unlock(t)
			})
			locktest.Eventually(t, "queued", func() bool { return len(b.Queued("k")) == i+1 })
		}
		b.FreeFair("k")
		all.Wait()
		if !slices.IsSorted(order) || len(order) != callers {
			t.Errorf("got the order %v, want the order of arrival", order)
		}
		b.WantNoQueue("k")
	})
}

// A caller with one attempt takes no place and does not overtake waiters.
func TestFair_OneAttempt(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("k", locktest.Stranger, time.Hour)
		_, _, err := locks.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		b.WantQueue("k")
		j := b.NewFairThread("k")
		if taken, _, err := j.Try(t.Context()); taken || err != nil {
			t.Fatal(taken, err)
		}
		b.Del(t.Context(), "k")
		_, _, err = locks.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		b.WantQueue("k", j.Field)
		if taken, _, err := j.Try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		j.Unlock(t)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.FairLock("k"), core.WaitTime(0))
		locktest.MustRelease(t, hold)
	})
}

// A release wakes the head at once, of this library or of Redisson.
func TestFair_ReleaseWakesTheHead(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
		_, got := b.JoinQueue(t.Context(), b.Locks(), "k")
		j := b.NewFairThread("k")
		locked := make(chan time.Time, 1)
		go func() {
			locktest.WantOK(t, j.Lock(context.Background()))
			locked <- time.Now()
		}()
		locktest.Eventually(t, "queued", func() bool { return len(b.Queued("k")) == 2 })
		locktest.Pass(100 * time.Millisecond)
		freed := time.Now()
		locktest.MustRelease(t, hold)
		ours := locktest.Got(t, got)
		locktest.WantSoon(t, "woken after %s", freed, 5*time.Millisecond)
		freed = time.Now()
		locktest.MustRelease(t, ours.Hold)
		if took := (<-locked).Sub(freed); took > 5*time.Millisecond {
			t.Errorf("Redisson was woken after %s, want at most 5ms", took)
		}
		_, got = b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		freed = time.Now()
		j.Unlock(t)
		ours = locktest.Got(t, got)
		locktest.WantSoon(t, "woken by Redisson after %s", freed, 5*time.Millisecond)
		_, got = b.JoinQueue(t.Context(), b.Locks(), "k")
		locktest.Pass(100 * time.Millisecond)
		locktest.Must(t, ours.Hold.Leave(t.Context(), 50*time.Millisecond)) // a lower TTL also makes the head attempt
		freed = time.Now()
		next := locktest.Got(t, got)
		locktest.WantSoon(t, "the next waiter had the lock after %s", freed, 100*time.Millisecond)
		locktest.MustRelease(t, next.Hold)
		b.WantNoQueue("k")
	})
}

// A forced release wakes the head, and the holder learns of it.
func TestFair_ForceRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.FairLock("k"))
		_, got := b.JoinQueue(t.Context(), locks, "k")
		locktest.Pass(100 * time.Millisecond)
		start := time.Now()
		locktest.WantGot(t, "forced", true)(b.Locks().FairLock("k").ForceRelease(t.Context()))
		next := locktest.Got(t, got)
		<-ctx.Done()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantSoon(t, "after %s", start, 100*time.Millisecond)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.MustRelease(t, next.Hold)
		b.WantNoQueue("k")
	})
}

// Waiters for a fair lock count for the limits of their client, although their queue is in Redis.
func TestFair_TooManyWaiters(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks := b.Locks(core.WithMaxWaitersPerKey(2))
		ctx, cancel := context.WithCancel(t.Context())
		_, one := b.JoinQueue(ctx, locks, "k")
		_, two := b.JoinQueue(ctx, locks, "k")
		_, _, err := locks.FairLock("k").Acquire(t.Context(), core.WaitTime(time.Minute))
		locktest.WantErr(t, err, core.ErrTooManyWaiters)
		cancel()
		locktest.WantErr(t, (<-one).Err, context.Canceled)
		locktest.WantErr(t, (<-two).Err, context.Canceled)
		locktest.Eventually(t, "an empty queue", func() bool { return len(b.Queued("k")) == 0 })
		locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
	})
}

// A thousand waiters that leave at once leave nothing behind, with few commands. The embedded Redis runs in a bubble.
// Each attempt takes it a millisecond, and each waiter attempts every 1.25 s. So in real time not all waiters would get
// into the queue on a busy machine.
func TestFair_ThousandGiveUp(t *testing.T) {
	t.Parallel()
	giveUp := func(t *testing.T, b *locktest.Redis, callers int) {
		t.Helper()
		b.Take("k", locktest.Stranger, time.Hour)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb, locktest.Patient)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, _, err := locks.FairLock("k").Acquire(ctx)
				locktest.WantErr(t, err, context.Canceled)
			})
		}
		locktest.Eventually(t, "all queued", func() bool { return b.LLen(context.Background(), locktest.FairQueue("k")).Val() == int64(callers) })
		asked := proxy.Watch(locktest.Script(t, "fair/clear"))
		cancel()
		all.Wait()
		locktest.Eventually(t, "an empty queue", func() bool { return len(b.Queued("k")) == 0 })
		if n := asked.Hits(); n > callers/10 {
			t.Errorf("%d questions, want at most %d", n, callers/10)
		}
		b.WantQueue("k")
	}
	locktest.Parallel(t, "embedded", func(t *testing.T) {
		locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) { giveUp(t, b, thorough.Or(1000, 250)) }) // each attempt reads the whole queue
	})
	locktest.Parallel(t, "server", func(t *testing.T) {
		giveUp(t, locktest.Real(t), 1000)
	})
}

func redisZ(member string, score time.Time) redis.Z {
	return redis.Z{Member: member, Score: float64(score.UnixMilli())}
}
