package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// stall is how long a free lock may be left, whoever has died.
const stall = 2 * time.Second

// Who waits is behind waiters whose processes have died: of this library, of Redisson, or both,
// one or many, before the lock is freed or at that moment. The lock is not left free for long.
func TestFair_DeadHeads(t *testing.T) {
	t.Parallel()
	dead := map[string]func(b *bed, n int){
		"of this library": func(b *bed, n int) {
			proxy, rdb := faultproxy.Around(b.t, b.Client)
			locks := locksOn(b.t, rdb, patient)
			ctx, cancel := context.WithCancel(context.Background())
			b.t.Cleanup(cancel)
			for range n {
				b.joins(ctx, locks, "k")
			}
			pass(100 * time.Millisecond)
			proxy.Refuse(true)
		},
		"that hang": func(b *bed, n int) {
			proxy, rdb := faultproxy.Around(b.t, b.Client)
			locks := locksOn(b.t, rdb, core.WithBackendTimeout(time.Minute))
			ctx, cancel := context.WithCancel(context.Background())
			b.t.Cleanup(cancel)
			for range n {
				b.joins(ctx, locks, "k")
			}
			pass(100 * time.Millisecond)
			proxy.BlackHole(true) // what is subscribed stays so, as of a stopped process
		},
		"of Redisson": func(b *bed, n int) {
			for range n {
				if taken, _, err := b.fairThread("k").try(context.Background()); taken || err != nil {
					b.t.Fatal(taken, err)
				}
			}
		},
	}
	both := func(b *bed, n int) {
		dead["of this library"](b, n)
		dead["of Redisson"](b, n)
	}
	dead["of both"] = both
	for name, die := range dead {
		for _, n := range []int{1, 12} {
			for _, how := range []string{"released", "expires"} {
				parallelBubble(t, fmt.Sprintf("%d %s, the lock is %s", n, name, how), func(t *testing.T, b *bed) {
					_, hold := acquired(t, t.Context(), b.locks().FairLock("k"), core.LeaseTime(1500*time.Millisecond))
					die(b, n)
					locks, sent := b.counted()
					field, got := b.joins(t.Context(), locks, "k")
					_, last := b.joins(t.Context(), b.locks(), "k")
					pass(300 * time.Millisecond)
					before := sent.Hits()
					if how == "released" {
						released(t, hold)
					} else {
						pass(b.PTTL(t.Context(), "k").Val())
					}
					freed := time.Now()
					o := <-got
					must(t, o.err)
					took := time.Since(freed)
					t.Logf("%s: free for %s, %d scripts", t.Name(), took, sent.Hits()-before)
					if took > stall {
						t.Errorf("the lock was free for %s", took)
					}
					// When it ends (a time in whole milliseconds may be too early, once or twice), when the head that
					// was notified should be there, within 500 ms, when the head is dropped, and one of the others' messages.
					if n := sent.Hits() - before; n > 7 {
						t.Errorf("%d scripts of one who waits", n)
					}
					if o.hold.Field() != field {
						t.Errorf("the holder is %s, want %s", o.hold.Field(), field)
					}
					released(t, o.hold)
					next := <-last
					must(t, next.err)
					released(t, next.hold)
					b.wantQueue("k")
				})
			}
		}
	}
}

// A thread of Redisson that listens, and has missed its message, is told again. One that does not
// come in half a minute is dropped.
func TestFair_RedissonThatDoesNotCome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		j := b.fairThread("k")
		if _, _, err := j.try(t.Context()); err != nil {
			t.Fatal(err)
		}
		sub := j.rdb.Subscribe(t.Context(), channelOf("k")+":"+j.field)
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		locks, sent := b.counted()
		_, got := b.joins(t.Context(), locks, "k")
		pass(10 * time.Second)
		b.wantQueue("k", b.queued("k")...)
		b.Del(t.Context(), "k") // without a message
		freed, before := time.Now(), sent.Hits()
		if _, err := sub.ReceiveTimeout(t.Context(), 3*time.Second); err != nil {
			t.Errorf("not told again: %v", err)
		}
		o := <-got
		must(t, o.err)
		if took := time.Since(freed); took < 20*time.Second || took > 35*time.Second {
			t.Errorf("dropped after %s", took)
		}
		if rate := float64(sent.Hits()-before) / time.Since(freed).Seconds(); rate > 2.5 { // it looks every 500 ms, jittered
			t.Errorf("%.1f scripts in a second", rate)
		}
		released(t, o.hold)
		b.wantNoQueue("k")
	})
}

// Many wait behind a head that is dead: each of them looks every 500 ms, jittered, and no more.
func TestFair_NobodySpinsBehindADeadHead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const callers = 40
		b.take("k", stranger, time.Hour)
		j := b.fairThread("k")
		if _, _, err := j.try(t.Context()); err != nil {
			t.Fatal(err)
		}
		sub := j.rdb.Subscribe(t.Context(), channelOf("k")+":"+j.field) // it seems to listen: that takes longest
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		locks, sent := b.counted()
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan outcome
		for range callers {
			_, got := b.joins(ctx, locks, "k")
			all = append(all, got)
		}
		b.Del(t.Context(), "k")
		before := sent.Hits()
		seconds := thorough.Or(20, 6)
		pass(time.Duration(seconds) * time.Second)
		rate := float64(sent.Hits()-before) / float64(seconds) / callers
		t.Logf("%.2f scripts in a second, of each waiter", rate)
		if rate > 2.5 {
			t.Errorf("%.2f scripts in a second, of each waiter", rate)
		}
		cancel()
		for _, got := range all {
			wantErr(t, (<-got).err, context.Canceled)
		}
	})
}

// A reply is lost: of the attempt that takes a place, of one in it, of one that takes the lock. The
// place stays, and nothing is left.
func TestFair_LostReplyKeepsThePlace(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 4; nth++ {
		parallelBubble(t, fmt.Sprintf("of attempt %d", nth), func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Hour)
			locks, proxy := b.knowing()
			lost := proxy.DropReply(faultproxy.Nth(nth, script(t, "fair/acquire")))
			_, got := b.joins(t.Context(), locks, "k")
			_, behind := b.joins(t.Context(), b.locks(), "k")
			pass(3 * time.Second)
			if nth < 4 && lost.Hits() == 0 {
				t.Error("no reply was lost")
			}
			wantSame(t, "waiters in Redis", len(b.queued("k")), 2)
			if nth == 4 {
				lost.Remove()
				lost = proxy.DropReply(faultproxy.Once(script(t, "fair/acquire")))
			}
			freed := time.Now()
			b.freeFair("k")
			first := <-got
			must(t, first.err)
			wantSoon(t, "after %s", freed, 200*time.Millisecond)
			if lost.Hits() == 0 {
				t.Error("no reply was lost")
			}
			b.wantCount(first.hold, "1")
			released(t, first.hold)
			second := <-behind
			must(t, second.err)
			released(t, second.hold)
			b.wantNoQueue("k")
		})
	}
}

// A reply is lost, and the attempt that got none is the last one: what it left goes.
func TestFair_LateLandingAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{true, false} {
		parallelBubble(t, fmt.Sprintf("free %v", free), func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Hour)
			locks, proxy := b.knowing()
			late := proxy.HoldRequest(faultproxy.Once(script(t, "fair/acquire")))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err := locks.FairLock("k").Acquire(ctx)
			wantErr(t, err, context.DeadlineExceeded)
			pass(10 * time.Second)
			b.wantQueue("k")
			if free {
				b.freeFair("k")
			}
			late.Release()
			pass(2 * time.Second)
			if free {
				b.wantGone("k")
			}
			b.wantQueue("k")
		})
	}
}

// One field after the other gets no answer, and lands late in any order: there is one place for
// the waiter, and one grant.
func TestFair_LateLandingWhileItWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		locks, proxy := b.knowing()
		late := proxy.HoldRequest(faultproxy.Once(script(t, "fair/acquire")))
		got := acquiring(t.Context(), locks.FairLock("k"), core.WaitTime(time.Minute))
		<-late.Hit()
		pass(300 * time.Millisecond)
		late.Release()
		pass(3 * time.Second)
		if n := len(b.queued("k")); n != 1 {
			t.Errorf("%d in the queue: %v", n, b.queued("k"))
		}
		b.freeFair("k")
		o := <-got
		must(t, o.err)
		b.wantCount(o.hold, "1")
		released(t, o.hold)
		b.wantNoQueue("k")
	})
}

// Everything is deleted under the waiters: they take places anew.
func TestFair_Flush(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		_, one := b.joins(t.Context(), b.locks(), "k")
		_, two := b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		start := time.Now()
		b.FlushAll(t.Context())
		for range 2 {
			select {
			case o := <-one:
				must(t, o.err)
				released(t, o.hold)
			case o := <-two:
				must(t, o.err)
				released(t, o.hold)
			}
		}
		wantSoon(t, "both had it after %s", start, stall)
		b.wantNoQueue("k")
	})
}

// The wait ends, a caller leaves, the client closes: each leaves the queue within a second, and is
// handed nothing later. Who is behind goes up.
func TestFair_GivingUp(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		closing := b.locks(patient)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, timed := b.joins(t.Context(), b.locks(patient), "k", core.WaitTime(2*time.Second))
		_, left := b.joins(ctx, b.locks(patient), "k")
		_, closed := b.joins(t.Context(), closing, "k")
		field, got := b.joins(t.Context(), b.locks(patient), "k")
		wantErr(t, (<-timed).err, core.ErrNotAcquired)
		cancel()
		wantErr(t, (<-left).err, context.Canceled)
		faultClose(t, closing)
		wantErr(t, (<-closed).err, core.ErrClosed)
		within(t, "the others have left", func() bool { return len(b.queued("k")) == 1 })
		b.wantQueue("k", field)
		b.freeFair("k")
		o := <-got
		must(t, o.err)
		released(t, o.hold)
		b.wantNoQueue("k")
	})
}

// A head that gives up when the lock has been freed for it passes that on.
func TestFair_HeadLeavesAFreeLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		locks, proxy := b.knowing()
		ctx, cancel := context.WithCancel(t.Context())
		_, head := b.joins(ctx, locks, "k")
		_, got := b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		proxy.DelayRequest(script(t, "fair/acquire"), 50*time.Millisecond)
		freed := time.Now()
		b.freeFair("k")
		cancel()
		if o := <-head; o.err == nil {
			t.Error("it has the lock")
		}
		o := <-got
		must(t, o.err)
		wantSoon(t, "the next one had it after %s", freed, 200*time.Millisecond)
		released(t, o.hold)
		pass(time.Second)
		b.wantNoQueue("k")
	})
}

// Clients are killed at random, some while they hold the lock, beside threads of Redisson of which
// some are killed too. A free lock is never left for long, and nothing is left at the end.
func TestFair_RandomKills(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(3, 1)) {
		parallelBubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T, b *bed) {
			random := rand.New(rand.NewPCG(seed, 8))
			ctx, stop := context.WithCancel(context.Background())
			over, end := context.WithCancel(context.Background())
			end()
			var all sync.WaitGroup
			var turns atomic.Int64
			start := func() (kill func()) {
				proxy, rdb := faultproxy.Around(t, b.Client)
				locks := locksOn(t, rdb, patient, core.WithWatchdog(time.Second))
				for range 3 {
					all.Go(func() {
						for ctx.Err() == nil {
							err := locks.FairLock("k").Do(ctx, func(context.Context) error {
								time.Sleep(20 * time.Millisecond) // the work, in the time of the bubble
								turns.Add(1)
								return nil
							})
							if err != nil {
								return
							}
						}
					})
				}
				return func() {
					proxy.Refuse(true)
					all.Go(func() { _ = locks.Close(over) }) // of nobody's concern any more, but for the end of the test
				}
			}
			redisson := func(ctx context.Context) {
				all.Go(func() {
					for ctx.Err() == nil {
						j := b.fairThread("k")
						if j.lock(ctx) != nil {
							return
						}
						turns.Add(1)
						j.unlock(t)
					}
				})
			}
			clients := []func(){start(), start(), start(), start()}
			for range 2 {
				redisson(ctx)
			}
			mortal, kill := context.WithCancel(ctx)
			redisson(mortal)
			var free, longest time.Duration
			const look = 10 * time.Millisecond
			for i := range 800 {
				pass(look)
				if b.Exists(ctx, "k").Val() == 0 && len(b.queued("k")) > 0 {
					free += look
					longest = max(longest, free)
				} else {
					free = 0
				}
				if i < 700 && random.IntN(150) == 0 {
					n := random.IntN(len(clients))
					clients[n]()
					clients[n] = start()
				}
				if i < 700 && random.IntN(150) == 0 {
					kill()
					mortal, kill = context.WithCancel(ctx)
					redisson(mortal)
				}
			}
			kill()
			stop()
			all.Wait()
			t.Logf("%d turns, free for %s at most", turns.Load(), longest)
			if longest > stall {
				t.Errorf("the lock was free for %s while somebody waited", longest)
			}
			pass(3 * time.Second)
			_, hold := acquired(t, context.Background(), b.locks().FairLock("k"), core.WaitTime(5*time.Second))
			released(t, hold)
			b.wantNoQueue("k")
		})
	}
}

// A thread of Redisson that comes again and again is not taken for dead, whatever is noted of it.
func TestFair_BusyRedissonKeepsItsTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, j := b.locks(), b.fairThread("k")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var ours, theirs int
		all.Go(func() {
			for ctx.Err() == nil {
				_ = locks.FairLock("k").Do(ctx, func(context.Context) error {
					time.Sleep(200 * time.Millisecond) // the work, in the time of the bubble
					ours++
					return nil
				})
			}
		})
		all.Go(func() {
			for j.lock(ctx) == nil {
				time.Sleep(200 * time.Millisecond) // likewise
				theirs++
				j.unlock(t)
			}
		})
		pass(2 * time.Minute)
		cancel()
		all.Wait()
		if d := ours - theirs; d < -1 || d > 1 || ours < 290 {
			t.Errorf("%d turns of ours, %d of Redisson", ours, theirs)
		}
	})
}

// One whose process was stopped for longer than its lease has lost the lock, and its waiters their
// places; all go on.
func TestFair_StoppedProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		stopped := locksOn(t, rdb, patient)
		ctx, hold := acquired(t, t.Context(), stopped.FairLock("k"), core.LeaseTime(time.Second))
		_, waits := b.joins(t.Context(), stopped, "k")
		field, got := b.joins(t.Context(), b.locks(), "k")
		pass(100 * time.Millisecond)
		silent := proxy.HoldRequest(faultproxy.Any()) // what it sends is on its way, as long as it is stopped
		o := <-got
		must(t, o.err)
		if o.hold.Field() != field {
			t.Errorf("the holder is %s", o.hold.Field())
		}
		silent.Remove()
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.wantCount(o.hold, "1")
		eventually(t, "the other one is back", func() bool { return len(b.queued("k")) == 1 })
		released(t, o.hold)
		o = <-waits
		must(t, o.err)
		released(t, o.hold)
		b.wantNoQueue("k")
	})
}
