package kinds_test

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

// hangInQueue queues a thread of Redisson that listens and never attempts again.
func hangInQueue(b *locktest.Redis, key string) (stop func()) {
	b.T.Helper()
	j := b.NewFairThread(key)
	if taken, _, err := j.Try(context.Background()); taken || err != nil {
		b.T.Fatal(taken, err)
	}
	return j.Listen(b.T)
}

// A waiter passes over a hanging thread of Redisson after half a minute. If the waiter is far from Redis and attempts
// less often, the half minute may start again once.
func TestFair_FarWaiterBehindAHangingThread(t *testing.T) {
	t.Parallel()
	for _, rtt := range []time.Duration{time.Millisecond, 110 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		locktest.ParallelBubble(t, rtt.String(), func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			defer hangInQueue(b, "k")()
			proxy, rdb := faultproxy.Around(t, b.Client)
			proxy.DelayRequest(locktest.Script(t, "fair/acquire"), rtt)
			_, got := b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient), "k")
			locktest.Pass(3 * time.Second)
			b.Del(t.Context(), "k") // without a message
			freed := time.Now()
			o := locktest.Got(t, got)
			if took := time.Since(freed); took < 25*time.Second || took > 62*time.Second {
				t.Errorf("the lock was free for %s, want 25s to 62s", took)
			}
			locktest.MustRelease(t, o.Hold)
			b.WantNoQueue("k")
		})
	}
}

// Callers with one attempt also pass over a hanging thread.
func TestFair_RareCallersBehindAHangingThread(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
		locktest.ParallelBubble(t, every.String(), func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			defer hangInQueue(b, "k")()
			other := b.Locks()
			b.Del(t.Context(), "k")
			freed := time.Now()
			for {
				_, hold, err := other.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
				if err == nil {
					locktest.MustRelease(t, hold)
					break
				}
				locktest.WantErr(t, err, core.ErrNotAcquired)
				if time.Since(freed) > 60*time.Second+3*every {
					t.Fatal("no client has the lock")
				}
				locktest.Pass(every)
			}
			if took := time.Since(freed); took < 25*time.Second {
				t.Errorf("passed over after %s, want at least 25s", took)
			}
		})
	}
}

// A waiting thread of Redisson that does not attempt counts as missing from the start of its turn, not from an earlier
// time at which the lock was free for another waiter.
func TestFair_RedissonThatWaitsLong(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		first, second := b.NewFairThread("k"), b.NewFairThread("k")
		for _, j := range []*locktest.FairThread{first, second} {
			_, _, err := j.Try(t.Context())
			locktest.Must(t, err)
			defer j.Listen(t)()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		behind, got := b.JoinQueue(ctx, b.Locks(), "k")
		other := b.Locks()
		locktest.Pass(2 * time.Second)
		b.FreeFair("k")
		wantRefused(t, other, "k")
		b.Take("k", locktest.Stranger, time.Hour) // as if an earlier caller had overtaken the first one
		locktest.Pass(2 * time.Minute)
		b.FreeFair("k")
		if taken, _, err := first.Try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		first.Unlock(t)
		wantRefused(t, other, "k")
		b.WantQueue("k", second.Field, behind)
		cancel()
		locktest.WantErr(t, (<-got).Err, context.Canceled)
	})
}

// After a process with hundreds of waiters has died, the next waiter gets the lock soon.
func TestFair_ManyDeadHeads(t *testing.T) {
	t.Parallel()
	const dead = 250
	die := map[string]func(b *locktest.Redis) (stop func()){
		"of this library": func(b *locktest.Redis) func() {
			proxy, rdb := faultproxy.Around(b.T, b.Client)
			locks := locktest.NewClient(b.T, rdb, locktest.Patient)
			ctx, cancel := context.WithCancel(context.Background())
			for range dead {
				go func() { _, _, _ = locks.FairLock("k").Acquire(ctx) }()
			}
			locktest.Eventually(b.T, "all queued", func() bool { return len(b.Queued("k")) == dead })
			locktest.Pass(time.Second)
			proxy.Refuse(true)
			return cancel
		},
		"of Redisson": func(b *locktest.Redis) func() {
			for range dead {
				_, _, err := b.NewFairThread("k").Try(context.Background())
				locktest.Must(b.T, err)
			}
			return func() {}
		},
	}
	for name, die := range die {
		locktest.ParallelBubble(t, fmt.Sprintf("%d %s", dead, name), func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			defer die(b)()
			_, got := b.JoinQueue(t.Context(), b.Locks(), "k")
			locktest.Pass(5 * time.Second)
			b.FreeFair("k")
			wantPassedOver(b, "k", got, stall)
		})
	}
}

// A waiter that is far from Redis also passes over a waiter of this library that has died or hangs.
func TestFair_FarWaiterBehindADeadWaiter(t *testing.T) {
	t.Parallel()
	for _, rtt := range []time.Duration{time.Millisecond, 110 * time.Millisecond, 300 * time.Millisecond} {
		for _, hangs := range []bool{false, true} {
			locktest.ParallelBubble(t, fmt.Sprintf("%s, hangs %t", rtt, hangs), func(t *testing.T, b *locktest.Redis) {
				b.Take("k", locktest.Stranger, time.Hour)
				dead, rdb := faultproxy.Around(t, b.Client)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.JoinQueue(ctx, locktest.NewClient(t, rdb, core.WithBackendTimeout(time.Minute)), "k")
				far, rdb := faultproxy.Around(t, b.Client)
				far.DelayRequest(locktest.Script(t, "fair/acquire"), rtt)
				_, got := b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient), "k")
				locktest.Pass(time.Second)
				dead.BlackHole(hangs)
				dead.Refuse(!hangs)
				locktest.Pass(100 * time.Millisecond)
				b.FreeFair("k")
				wantPassedOver(b, "k", got, stall+2*rtt)
			})
		}
	}
}

// fairNotes returns the name of the hash with the times at which waiters of a fair lock were seen, or found
// missing.
func fairNotes(key string) string { return locktest.Tagged(key) + ":interlock_seen" }

// dieWaiting makes a client wait for a fair lock n times and its process die.
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

// wantPassedOver checks that the only live waiter gets a free fair lock soon, and that the queue is empty after it.
func wantPassedOver(b *locktest.Redis, key string, got <-chan locktest.Outcome, soon time.Duration) {
	b.T.Helper()
	freed := time.Now()
	o := locktest.Got(b.T, got)
	if took := time.Since(freed); took > soon {
		b.T.Errorf("the lock was free for %s", took)
	}
	locktest.MustRelease(b.T, o.Hold)
	b.WantNoQueue(key)
}

// wantRefused checks that an attempt is refused.
func wantRefused(t *testing.T, locks *core.Client, key string) {
	t.Helper()
	_, _, err := locks.FairLock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
}

// Waiters have died, and no client waits behind them. Callers come now and then, with one attempt or a short wait. At
// the latest the third caller gets the lock, although no client attempted in between.
func TestFair_DeadHeadsAndRareCallers(t *testing.T) {
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

// A head was notified, and then no command reaches Redis for a long time, as if the server was stopped or replaced. The
// first caller that attempts afterwards does not treat the head as dead. The next caller does so only after the head
// had time to attempt.
func TestFair_StallOfTheServer(t *testing.T) {
	t.Parallel()
	for _, stalls := range []time.Duration{1600 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
		locktest.ParallelBubble(t, fmt.Sprint(stalls), func(t *testing.T, b *locktest.Redis) {
			_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
			proxy, rdb := faultproxy.Around(t, b.Client)
			head, got := b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient, core.WithBackendTimeout(time.Minute)), "k")
			other := b.Locks()
			locktest.Pass(100 * time.Millisecond)
			for range 2 { // the second time with notes of the first time
				stopped := proxy.HoldRequest(locktest.Script(t, "fair/acquire"))
				locktest.MustRelease(t, hold)
				locktest.Pass(stalls)
				wantRefused(t, other, "k")
				locktest.Pass(time.Second)
				wantRefused(t, other, "k")
				b.WantQueue("k", head)
				stopped.Remove()
				o := locktest.Got(t, got)
				if o.Hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.Hold.Field(), head)
				}
				hold = o.Hold
				head, got = b.JoinQueue(t.Context(), locktest.NewClient(t, rdb, locktest.Patient, core.WithBackendTimeout(time.Minute)), "k")
				locktest.Pass(100 * time.Millisecond)
			}
			locktest.MustRelease(t, hold)
			locktest.MustRelease(t, locktest.Got(t, got).Hold)
			b.WantNoQueue("k")
		})
	}
}

// A waiter without channels attempts only every 0.5 s. Callers with one attempt do not pass it over, however often
// they come.
func TestFair_HeadThatPollsRarely(t *testing.T) {
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
				wantRefused(t, other, "k")
				b.Del(t.Context(), "k") // without a message
				for b.Exists(t.Context(), "k").Val() == 0 {
					wantRefused(t, other, "k")
					locktest.Pass(every)
				}
				o := locktest.Got(t, got)
				if o.Hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.Hold.Field(), head)
				}
				locktest.MustRelease(t, o.Hold)
				b.WantNoQueue("k")
			}
		})
	}
}

// A thread of Redisson waits, gets the lock, and waits again with the same field. Whether it listens or not, a caller
// with one attempt comes at the start of each of its turns and finds the lock free. The thread keeps its place, because
// its earlier absences do not count.
func TestFair_BusyRedissonAndRareCallers(t *testing.T) {
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
					wantRefused(t, other, "k")
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

// The clock of the server goes back after a head was noted as missing. The head is still passed over soon.
func TestFair_NotesFromTheFuture(t *testing.T) {
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

// Only waiters in the queue have notes. When a waiter leaves the queue, in whatever way, its note is removed.
func TestFair_NoNotesOfWaitersThatLeft(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		gone, left := b.JoinQueue(ctx, b.Locks(), "k")
		late := b.NewFairThread("k")
		late.Wait = -time.Hour.Milliseconds() // its deadline has passed
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
		locktest.MustRelease(t, locktest.Got(t, got).Hold)
		b.WantNoQueue("k")
		b.WantGone(fairNotes("k"))
	})
}

// The queue of one lock, or the set of its deadlines, has another type. Waiters of another lock still leave its queue,
// and abandoned fields are cleared up.
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
			locktest.WithinASecond(t, "an empty queue", func() bool { return len(b.Queued("a"))+len(b.Queued("b")) == 0 })
			b.WantQueue("b")
		})
	}
}
