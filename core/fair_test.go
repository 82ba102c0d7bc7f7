package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// A fair lock that nobody wants leaves nothing but its hash.
func TestFair_Uncontended(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		for _, key := range []string{"k", "order:{42}"} {
			ctx, hold := acquired(t, t.Context(), locks.FairLock(key), core.LeaseTime(time.Minute))
			b.wantCount(hold, "1")
			b.wantTTL(key, core.DefaultWatchdog, time.Minute)
			b.wantQueue(key)
			_, inner := acquired(t, ctx, locks.FairLock(key))
			b.wantCount(hold, "2")
			released(t, inner)
			released(t, hold)
			b.wantGone(key, fairQueue(key), fairDeadlines(key))
		}
		if n := sent.Hits(); n > 8+4 { // and a script is sent again that the server does not know
			t.Errorf("%d scripts", n)
		}
	})
}

// Deadlines are those that Redisson writes: each waiter adds its allowance to the one before,
// and takes it with him when he goes.
func TestFair_DeadlinesAreRedissons(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		j0, j1, j3 := b.fairThread("k"), b.fairThread("k"), b.fairThread("k")
		if taken, _, err := j0.try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		start := time.Now()
		want := func(field string, after time.Duration) {
			t.Helper()
			if got := b.deadline("k", field).Sub(start); got < after-10*time.Millisecond || got > after+10*time.Millisecond {
				t.Errorf("the deadline of %s is in %s, want %s", field, got, after)
			}
		}
		if _, ttl, err := j1.try(t.Context()); ttl != 30*time.Second || err != nil {
			t.Errorf("answer %s, %v", ttl, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f2, got2 := b.joins(ctx, locks, "k")
		if _, ttl, err := j3.try(t.Context()); ttl.Round(time.Second) != 630*time.Second || err != nil {
			t.Errorf("answer %s, %v", ttl, err)
		}
		f4, got4 := b.joins(t.Context(), locks, "k")
		want(j1.field, 330*time.Second)
		want(f2, 630*time.Second)
		want(j3.field, 930*time.Second)
		want(f4, 1230*time.Second)
		b.wantQueue("k", j1.field, f2, j3.field, f4)

		cancel() // who gives up takes its allowance from those behind
		wantErr(t, (<-got2).err, context.Canceled)
		eventually(t, "gone", func() bool { return len(b.queued("k")) == 3 })
		b.wantQueue("k", j1.field, j3.field, f4)
		want(j1.field, 330*time.Second)
		want(j3.field, 630*time.Second)
		want(f4, 930*time.Second)

		j0.unlock(t)
		if taken, _, err := j1.try(t.Context()); !taken || err != nil { // Redisson acquires, and takes its own
			t.Fatal(taken, err)
		}
		want(j3.field, 330*time.Second)
		want(f4, 630*time.Second)
		j3.giveUp(t)
		want(f4, 330*time.Second)
		f5, got5 := b.joins(t.Context(), locks, "k")
		want(f5, 630*time.Second)
		j1.unlock(t)
		first := <-got4
		must(t, first.err)
		b.wantQueue("k", f5)
		want(f5, 330*time.Second) // we acquire, and take our own
		if first.hold.Field() != f4 {
			t.Errorf("the holder is %s, want %s", first.hold.Field(), f4)
		}
		released(t, first.hold)
		last := <-got5
		must(t, last.err)
		released(t, last.hold)
		b.wantNoQueue("k")
	})
}

// One who waits for long keeps its deadline away, and its place.
func TestFair_WaitersOutliveTheirDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		locks := b.locks()
		one, got1 := b.joins(t.Context(), locks, "k")
		two, got2 := b.joins(t.Context(), b.locks(), "k")
		b.ZAdd(t.Context(), fairDeadlines("k"), redisZ(one, time.Now().Add(time.Second)), redisZ(two, time.Now().Add(2*time.Second)))
		pass(time.Minute)
		b.wantQueue("k", one, two)
		if d := time.Until(b.deadline("k", two)); d < 598*time.Second || d > 600*time.Second {
			t.Errorf("the deadline of the second one is in %s", d)
		}
		if ttl := b.TTL(t.Context(), fairQueue("k")).Val(); ttl < 24*time.Hour {
			t.Errorf("the queue ends in %s", ttl)
		}
		b.free("k")
		first := <-got1
		must(t, first.err)
		released(t, first.hold)
		second := <-got2
		must(t, second.err)
		released(t, second.hold)
		b.wantNoQueue("k")
	})
}

// 50 waiters of 5 clients, two of them Redisson, have the lock in the order in which they came.
func TestFair_OrderOfArrival(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		const callers = 50
		clients := []*core.Client{b.locks(patient), b.locks(patient), b.locks(patient)}
		b.take("k", stranger, time.Hour)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		had := func(i int) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		}
		for i := range callers {
			all.Go(func() {
				if c := i % 5; c < len(clients) {
					err := clients[c].FairLock("k").Do(context.Background(), func(context.Context) error {
						had(i)
						return nil
					})
					wantOK(t, err)
					return
				}
				j := b.fairThread("k")
				if err := j.lock(context.Background()); err != nil {
					t.Error(err)
					return
				}
				had(i)
				j.unlock(t)
			})
			eventually(t, "queued", func() bool { return len(b.queued("k")) == i+1 })
		}
		b.freeFair("k")
		all.Wait()
		if !slices.IsSorted(order) || len(order) != callers {
			t.Errorf("order %v", order)
		}
		b.wantNoQueue("k")
	})
}

// One attempt takes no place, and does not overtake those who wait.
func TestFair_OneAttempt(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		b.take("k", stranger, time.Hour)
		_, _, err := locks.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		b.wantQueue("k")
		j := b.fairThread("k")
		if taken, _, err := j.try(t.Context()); taken || err != nil {
			t.Fatal(taken, err)
		}
		b.Del(t.Context(), "k")
		_, _, err = locks.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		b.wantQueue("k", j.field)
		if taken, _, err := j.try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		j.unlock(t)
		_, hold := acquired(t, t.Context(), locks.FairLock("k"), core.WaitTime(0))
		released(t, hold)
	})
}

// A release wakes the head at once, whichever side it is of.
func TestFair_ReleaseWakesTheHead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().FairLock("k"))
		_, got := b.joins(t.Context(), b.locks(), "k")
		j := b.fairThread("k")
		locked := make(chan time.Time, 1)
		go func() {
			wantOK(t, j.lock(context.Background()))
			locked <- time.Now()
		}()
		eventually(t, "queued", func() bool { return len(b.queued("k")) == 2 })
		pass(100 * time.Millisecond)
		freed := time.Now()
		released(t, hold)
		ours := <-got
		must(t, ours.err)
		wantSoon(t, "woken after %s", freed, 5*time.Millisecond)
		freed = time.Now()
		released(t, ours.hold)
		if took := (<-locked).Sub(freed); took > 5*time.Millisecond {
			t.Errorf("Redisson was woken after %s", took)
		}
		_, got = b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		freed = time.Now()
		j.unlock(t)
		ours = <-got
		must(t, ours.err)
		wantSoon(t, "woken by Redisson after %s", freed, 5*time.Millisecond)
		_, got = b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		must(t, ours.hold.Leave(t.Context(), 50*time.Millisecond)) // a lower TTL is a reason to look, too
		freed = time.Now()
		next := <-got
		must(t, next.err)
		wantSoon(t, "the next one had it after %s", freed, 100*time.Millisecond)
		released(t, next.hold)
		b.wantNoQueue("k")
	})
}

// A forced release wakes the head, and the holder learns of it.
func TestFair_ForceRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.FairLock("k"))
		_, got := b.joins(t.Context(), locks, "k")
		pass(100 * time.Millisecond)
		start := time.Now()
		wantGot(t, "forced", true)(b.locks().FairLock("k").ForceRelease(t.Context()))
		next := <-got
		must(t, next.err)
		<-ctx.Done()
		wantEnded(t, ctx, core.ErrLost)
		wantSoon(t, "after %s", start, 100*time.Millisecond)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		released(t, next.hold)
		b.wantNoQueue("k")
	})
}

// Waiters in Redis count for the limits of this process.
func TestFair_TooManyWaiters(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		locks := b.locks(core.WithMaxWaitersPerKey(2))
		ctx, cancel := context.WithCancel(t.Context())
		_, one := b.joins(ctx, locks, "k")
		_, two := b.joins(ctx, locks, "k")
		_, _, err := locks.FairLock("k").Acquire(t.Context(), core.WaitTime(time.Minute))
		wantErr(t, err, core.ErrTooManyWaiters)
		cancel()
		wantErr(t, (<-one).err, context.Canceled)
		wantErr(t, (<-two).err, context.Canceled)
		eventually(t, "nobody queued", func() bool { return len(b.queued("k")) == 0 })
		wantSame(t, "stats", locks.Stats(), core.Stats{})
	})
}

// A thousand waiters that leave at once leave nothing, with few questions. The embedded Redis is in a
// bubble: it needs a millisecond for each look of so many, and they look every 1.25 s. A busy machine
// had nothing but these looks to do then, and not all came to stand in the queue.
func TestFair_AThousandGiveUpAtOnce(t *testing.T) {
	t.Parallel()
	giveUp := func(t *testing.T, b *bed, callers int) {
		t.Helper()
		b.take("k", stranger, time.Hour)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb, patient)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, _, err := locks.FairLock("k").Acquire(ctx)
				wantErr(t, err, context.Canceled)
			})
		}
		eventually(t, "all queued", func() bool { return b.LLen(context.Background(), fairQueue("k")).Val() == int64(callers) })
		asked := proxy.Watch(script(t, "fair/clear"))
		cancel()
		all.Wait()
		eventually(t, "nobody queued", func() bool { return len(b.queued("k")) == 0 })
		if n := asked.Hits(); n > callers/10 {
			t.Errorf("%d questions", n)
		}
		b.wantQueue("k")
	}
	parallel(t, "embedded", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bed) { giveUp(t, b, thorough.Or(1000, 250)) }) // each of them looks through all of the queue
	})
	parallel(t, "server", func(t *testing.T) {
		giveUp(t, serverBed(t), 1000)
	})
}
