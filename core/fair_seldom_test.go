package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// fairNotes is the hash with when waiters of a fair lock were seen, or found missing.
func fairNotes(key string) string { return inSlotOf(key) + ":interlock_seen" }

// diesWaiting has a client wait for a fair lock n times, and its process die.
func (b *bed) diesWaiting(key string, n int) {
	b.t.Helper()
	proxy, rdb := faultproxy.Around(b.t, b.Client)
	locks := locksOn(b.t, rdb, patient)
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	for range n {
		b.joins(ctx, locks, key)
	}
	pass(100 * time.Millisecond)
	proxy.Refuse(true)
	pass(time.Second)
}

// wantPassedOver wants the only live waiter to get a fair lock soon that is free now, and to be the
// last one in its queue.
func (b *bed) wantPassedOver(key string, got <-chan outcome, soon time.Duration) {
	b.t.Helper()
	freed := time.Now()
	o := <-got
	must(b.t, o.err)
	if took := time.Since(freed); took > soon {
		b.t.Errorf("the lock was free for %s", took)
	}
	released(b.t, o.hold)
	b.wantNoQueue(key)
}

// refusedOnce wants one attempt to find a lock not to be acquired.
func refusedOnce(t *testing.T, locks *core.Client, key string) {
	t.Helper()
	_, _, err := locks.FairLock(key).Acquire(t.Context(), core.WaitTime(0))
	wantErr(t, err, core.ErrNotAcquired)
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
			parallelBubble(t, fmt.Sprint(tt, dead), func(t *testing.T, b *bed) {
				_, hold := acquired(t, t.Context(), b.locks().FairLock("k"))
				for range dead.threads {
					if taken, _, err := b.fairThread("k").try(t.Context()); taken || err != nil {
						t.Fatal(taken, err)
					}
				}
				b.diesWaiting("k", dead.ours)
				released(t, hold)
				other := b.locks().FairLock("k")
				for n := 1; ; n++ {
					pass(tt.every)
					_, hold, err := other.Acquire(t.Context(), core.WaitTime(tt.wait))
					if err == nil {
						released(t, hold)
						b.wantNoQueue("k")
						b.wantGone(fairNotes("k"))
						return
					}
					wantErr(t, err, core.ErrNotAcquired)
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
		parallelBubble(t, fmt.Sprint(stalls), func(t *testing.T, b *bed) {
			_, hold := acquired(t, t.Context(), b.locks().FairLock("k"))
			proxy, rdb := faultproxy.Around(t, b.Client)
			head, got := b.joins(t.Context(), locksOn(t, rdb, patient, core.WithBackendTimeout(time.Minute)), "k")
			other := b.locks()
			pass(100 * time.Millisecond)
			for range 2 { // the second time with notes of the first
				stopped := proxy.HoldRequest(script(t, "fair/acquire"))
				released(t, hold)
				pass(stalls)
				refusedOnce(t, other, "k")
				pass(time.Second)
				refusedOnce(t, other, "k")
				b.wantQueue("k", head)
				stopped.Remove()
				o := <-got
				must(t, o.err)
				if o.hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.hold.Field(), head)
				}
				hold = o.hold
				head, got = b.joins(t.Context(), locksOn(t, rdb, patient, core.WithBackendTimeout(time.Minute)), "k")
				pass(100 * time.Millisecond)
			}
			released(t, hold)
			o := <-got
			must(t, o.err)
			released(t, o.hold)
			b.wantNoQueue("k")
		})
	}
}

// A waiter that has no channels looks every 0.5 s only. Callers with one attempt, however often
// they come, do not have it passed over.
func TestFair_SeldomLookingHeadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{100 * time.Millisecond, 2 * time.Second} {
		parallelBubble(t, fmt.Sprint(every), func(t *testing.T, b *bed) {
			other := b.locks()
			for range 20 {
				b.take("k", stranger, time.Hour)
				proxy, rdb := faultproxy.Around(t, b.Client)
				proxy.HoldRequest(faultproxy.Command("subscribe")) // never answered
				proxy.DelayRequest(script(t, "fair/acquire"), 150*time.Millisecond)
				head, got := b.joins(t.Context(), locksOn(t, rdb, patient), "k")
				pass(300 * time.Millisecond)
				refusedOnce(t, other, "k")
				b.Del(t.Context(), "k") // without a message
				for b.Exists(t.Context(), "k").Val() == 0 {
					refusedOnce(t, other, "k")
					pass(every)
				}
				o := <-got
				must(t, o.err)
				if o.hold.Field() != head {
					t.Errorf("the holder is %s, want %s", o.hold.Field(), head)
				}
				released(t, o.hold)
				b.wantNoQueue("k")
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
			parallelBubble(t, fmt.Sprintf("every %s, listens %v", every, listens), func(t *testing.T, b *bed) {
				other, j := b.locks(), b.fairThread("k")
				if listens {
					sub := j.rdb.Subscribe(t.Context(), channelOf("k")+":"+j.field)
					defer func() { _ = sub.Close() }()
					_, err := sub.Receive(t.Context())
					must(t, err)
				}
				for range 50 {
					b.take("k", stranger, time.Hour)
					if taken, _, err := j.try(t.Context()); taken || err != nil {
						t.Fatal(taken, err)
					}
					b.Del(t.Context(), "k")
					refusedOnce(t, other, "k")
					b.wantQueue("k", j.field)
					if taken, _, err := j.try(t.Context()); !taken || err != nil {
						t.Fatal(taken, err)
					}
					j.unlock(t)
					pass(every)
				}
			})
		}
	}
}

// The clock of the server goes back after a head was noted as missing: it is passed over soon all the same.
func TestFair_NotesOfTimesToCome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().FairLock("k"))
		b.diesWaiting("k", 2)
		later := time.Now().Add(time.Hour).UnixMilli()
		for _, name := range append(b.queued("k"), "told") {
			must(t, b.HSet(t.Context(), fairNotes("k"), name, fmt.Sprintf("%d ", later)).Err())
		}
		_, got := b.joins(t.Context(), b.locks(), "k")
		released(t, hold)
		b.wantPassedOver("k", got, stall)
	})
}

// Notes are of those in the queue: who has gone leaves none, whatever way he went.
func TestFair_NoNotesOfThoseWhoHaveGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().FairLock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		gone, left := b.joins(ctx, b.locks(), "k")
		late := b.fairThread("k")
		late.wait = -time.Hour.Milliseconds() // its deadline is over
		_, _, err := late.try(t.Context())
		must(t, err)
		_, got := b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		now := time.Now().UnixMilli()
		must(t, b.HSet(t.Context(), fairNotes("k"), gone, now, late.field, now).Err())
		cancel()
		wantErr(t, (<-left).err, context.Canceled)
		pass(3 * time.Second)
		if notes := b.HKeys(t.Context(), fairNotes("k")).Val(); !slices.Equal(notes, b.queued("k")) {
			t.Errorf("notes of %v", notes)
		}
		released(t, hold)
		o := <-got
		must(t, o.err)
		released(t, o.hold)
		b.wantNoQueue("k")
		b.wantGone(fairNotes("k"))
	})
}

// The queue of one lock, or its deadlines, are of another type. Waiters for another lock leave its
// queue all the same, and what nobody holds is freed.
func TestFair_WrongTypeDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	for _, poisoned := range []string{fairQueue("a"), fairDeadlines("a"), fairNotes("a")} {
		parallelBeds(t, poisoned, func(t *testing.T, b *bed) {
			locks, rdb := b.locks(), b.Client
			b.take("a", stranger, time.Hour)
			b.take("b", stranger, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			_, one := b.joins(ctx, locks, "a")
			_, two := b.joins(ctx, locks, "b")
			must(t, rdb.Del(t.Context(), poisoned).Err())
			must(t, rdb.Set(t.Context(), poisoned, "x", 0).Err())
			cancel()
			<-one
			<-two
			within(t, "nobody queued", func() bool { return len(b.queued("a"))+len(b.queued("b")) == 0 })
			b.wantQueue("b")
		})
	}
}
