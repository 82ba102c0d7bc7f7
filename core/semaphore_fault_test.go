package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// dropped makes a client end as a crash does: what it holds is left in Redis.
func dropped(locks *core.Client) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = locks.Close(over)
}

// The permit of a process that has died comes back when its lease ends, to a waiter here, and to
// one of Redisson, which looks at the deadline that it saw.
func TestPermitSemaphore_CrashedHolder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		died := b.locks(core.WithWatchdog(3 * time.Second))
		_, _ = acquired(t, t.Context(), died.Semaphore("pool", 2).Lock)
		_, other := acquired(t, t.Context(), b.locks().Semaphore("pool", 2).Lock)
		got := acquiring(t.Context(), b.locks().Semaphore("pool", 2).Lock)
		pass(10 * time.Second)
		b.wantPermits(0, 2)
		dropped(died)
		start := time.Now()
		o := <-got
		must(t, o.err)
		wantSoon(t, "it came back after %s", start, 3*time.Second+10*time.Millisecond)
		released(t, other)
		released(t, o.hold)
		b.wantPermits(2, 0)
	})
}

// A message that is lost hangs nobody: who waits looks once a second at least.
func TestSemaphores_LostMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		await func(locks *core.Client) error
		opens func(b permits)
	}{
		"permit": {
			func(locks *core.Client) error {
				return locks.Semaphore("pool", 0).Do(context.Background(), func(context.Context) error { return nil })
			},
			func(b permits) { b.Set(context.Background(), "pool", 1, 0) },
		},
		"plain": {
			func(locks *core.Client) error { return locks.PlainSemaphore("pool").Acquire(context.Background(), 1) },
			func(b permits) { b.Set(context.Background(), "pool", 1, 0) },
		},
		"latch": {
			func(locks *core.Client) error { return locks.CountDownLatch("pool").Await(context.Background()) },
			func(b permits) { b.Del(context.Background(), "pool") },
		},
	} {
		parallelBubble(t, name, func(t *testing.T, bed *bed) {
			b := permits{bed}
			b.Set(t.Context(), "pool", map[bool]int{true: 1, false: 0}[name == "latch"], 0)
			locks := b.locks()
			done := make(chan error, 1)
			go func() { done <- tt.await(locks) }()
			pass(10 * time.Second)
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			default:
			}
			start := time.Now()
			tt.opens(b)
			must(t, <-done)
			wantSoon(t, "it was found after %s", start, time.Second)
		})
	}
}

// A message wakes one who waits, at once, whoever has sent it.
func TestSemaphores_WokenByRedisson(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		done := make(chan error, 1)
		go func() { done <- locks.PlainSemaphore("pool").Acquire(context.Background(), 2) }()
		pass(1500 * time.Millisecond)
		start := time.Now()
		b.Set(t.Context(), "pool", 2, 0)
		b.Publish(t.Context(), semaphoreChannel, "2")
		must(t, <-done)
		wantSoon(t, "woken after %s", start, 5*time.Millisecond)
	})
}

// Callers of one client get permits in the order in which they came: one that wants many is not
// overtaken by those that want few.
func TestSemaphore_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.locks().PlainSemaphore("pool")
		_, err := s.TrySetPermits(t.Context(), 1)
		must(t, err)
		order := make(chan int, 3)
		for _, n := range []int{3, 1, 2} {
			go func() {
				if err := s.Acquire(context.Background(), n); err == nil {
					order <- n
				}
			}()
			pass(time.Millisecond)
		}
		for range 5 {
			must(t, s.Release(t.Context(), 1))
			pass(100 * time.Millisecond)
		}
		for _, want := range []int{3, 1, 2} {
			if got := <-order; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		wantGot(t, "Available", 0)(s.Available(t.Context()))
	})
}

// A latch opens for all who wait, in two clients, at once, and for who comes later.
func TestCountDownLatch_OpensForAll(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		clients := []*core.Client{b.locks(), b.locks()}
		_, err := clients[0].CountDownLatch("k").TrySetCount(t.Context(), 3)
		must(t, err)
		var all sync.WaitGroup
		var opened time.Time
		for i := range 60 {
			all.Go(func() {
				if err := clients[i%2].CountDownLatch("k").Await(context.Background()); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				if late := time.Since(opened); opened.IsZero() || late > 5*time.Millisecond {
					t.Errorf("%d goes on %s after it opened", i, late)
				}
			})
		}
		for range 3 {
			pass(1500 * time.Millisecond)
			opened = time.Now()
			must(t, clients[1].CountDownLatch("k").CountDown(t.Context()))
		}
		all.Wait()
		must(t, clients[0].CountDownLatch("k").Await(t.Context(), core.WaitTime(0)))
		for _, c := range clients {
			wantSame(t, "stats", c.Stats(), core.Stats{})
		}
	})
}

// A reply, or a request, of any script at any step is lost: every count is exact, no operation
// fails, and nothing is left behind.
func TestSemaphores_LostReplies(t *testing.T) {
	t.Parallel()
	lives := map[string]func(t *testing.T, b permits, locks *core.Client){"permit": permitLife, "plain": plainLife, "latch": latchLife}
	for name, life := range lives {
		for _, lost := range []string{"reply", "request"} {
			parallelBeds(t, name+"/"+lost, func(t *testing.T, bed *bed) {
				for nth, hit := 1, true; hit; nth++ {
					must(t, bed.FlushDB(t.Context()).Err())
					proxy, rdb := faultproxy.Around(t, bed.Client)
					locks := locksOn(t, rdb, patient)
					match := faultproxy.Nth(nth, scripts)
					var rule *faultproxy.Rule
					if lost == "reply" {
						rule = proxy.DropReply(match)
					} else {
						rule = proxy.DropRequest(match)
					}
					life(t, permits{bed}, locks)
					hit = rule.Hits() > 0
					if t.Failed() {
						t.Fatalf("with %s %d lost", lost, nth)
					}
				}
			})
		}
	}
}

func permitLife(t *testing.T, b permits, locks *core.Client) {
	t.Helper()
	pool := locks.Semaphore("pool", 0)
	wantGot(t, "TrySetPermits", true)(pool.TrySetPermits(t.Context(), 2))
	must(t, pool.AddPermits(t.Context(), 2))
	must(t, pool.SetPermits(t.Context(), 3))
	_, one := acquired(t, t.Context(), pool.Lock)
	_, two := acquired(t, t.Context(), pool.Lock, core.LeaseTime(time.Minute))
	must(t, two.Refresh(t.Context(), time.Hour))
	must(t, two.Refresh(t.Context(), 10*time.Second))
	b.eventually(1, 2)
	must(t, two.Leave(t.Context(), time.Hour))
	released(t, one)
	b.eventually(2, 1)
	if _, err := pool.ForceRelease(t.Context()); err != nil { // it is not sent again
		_, err = pool.ForceRelease(t.Context())
		must(t, err)
	}
	b.eventually(3, 0)
}

func plainLife(t *testing.T, b permits, locks *core.Client) {
	t.Helper()
	s := locks.PlainSemaphore("pool")
	wantGot(t, "TrySetPermits", true)(s.TrySetPermits(t.Context(), 5))
	must(t, s.Acquire(t.Context(), 3))
	b.eventually(2, 0)
	must(t, s.Release(t.Context(), 2))
	must(t, s.Acquire(t.Context(), 1))
	must(t, s.AddPermits(t.Context(), 4))
	b.eventually(7, 0)
	n, err := s.Drain(t.Context())
	if errors.Is(err, core.ErrUnavailable) { // a question is not sent again
		n, err = s.Drain(t.Context())
	}
	if n != 7 || err != nil {
		t.Errorf("Drain: %d, %v", n, err)
	}
	b.eventually(0, 0)
	must(t, s.Release(t.Context(), 1))
	b.eventually(1, 0)
}

func latchLife(t *testing.T, b permits, locks *core.Client) {
	t.Helper()
	l := locks.CountDownLatch("k")
	wantGot(t, "TrySetCount", true)(l.TrySetCount(t.Context(), 3))
	opened := make(chan error, 1)
	go func() { opened <- l.Await(context.Background()) }()
	waiters(t, locks, 1)
	for range 3 {
		if got := b.Get(t.Context(), "k").Val(); got == "" {
			t.Error("it is open too early")
		}
		must(t, l.CountDown(t.Context()))
	}
	must(t, <-opened)
	b.wantGone("k")
}

// eventually waits until so many permits are free and out, within a second.
func (b permits) eventually(free, out int) {
	b.t.Helper()
	end := time.Now().Add(measured(time.Second + slack))
	for !b.are(free, out) && time.Now().Before(end) {
		time.Sleep(time.Millisecond) // a poll with a bound, not a guess
	}
	b.wantPermits(free, out)
}

func (b permits) are(free, out int) bool {
	return b.Get(context.Background(), "pool").Val() == fmt.Sprint(free) && b.ZCard(context.Background(), leases).Val() == int64(out)
}

// An operation whose caller has gone lands late: a take is undone, or does nothing; what gives is
// executed once, in the background if need be.
func TestSemaphore_LandsLate(t *testing.T) {
	t.Parallel()
	for _, late := range []string{"before it is undone", "after that"} {
		parallelBubble(t, late, func(t *testing.T, bed *bed) {
			b := permits{bed}
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks := locksOn(t, rdb)
			s := locks.PlainSemaphore("pool")
			_, err := s.TrySetPermits(t.Context(), 2)
			must(t, err)
			take := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "plain_semaphore/acquire", "pool")))
			undo := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "plain_semaphore/clear", "pool")))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			warmScript(t, b, "plain_semaphore/acquire")
			wantErr(t, s.Acquire(ctx, 2), core.ErrNotAcquired, context.DeadlineExceeded)
			if late == "after that" {
				undo.Release()
				pass(5 * time.Second)
				b.wantPermits(2, 0)
			}
			take.Release()
			pass(100 * time.Millisecond)
			undo.Release()
			pass(5 * time.Second)
			b.wantPermits(2, 0)
			must(t, s.Acquire(t.Context(), 2, core.WaitTime(0)))
			b.wantPermits(0, 0)
		})
	}
}

// What was sent again, and is answered, is executed once, however late its first send lands, and
// whatever was done since.
func TestSemaphore_FirstSendLandsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		b.Set(t.Context(), "pool", 0, 0)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb)
		s := locks.PlainSemaphore("pool")
		warmScript(t, b, "plain_semaphore/clear")
		must(t, s.Release(t.Context(), 1))
		first := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "plain_semaphore/clear", "pool")))
		err := s.Release(t.Context(), 2)
		pass(2 * time.Second)
		b.wantPermits(3, 0)
		for range 3 {
			must(t, s.Acquire(t.Context(), 1, core.WaitTime(0)))
			must(t, s.Release(t.Context(), 1))
		}
		first.Release()
		pass(2 * time.Second)
		b.wantPermits(3, 0)
		if n := first.Executed(); n != 1 {
			t.Errorf("the first send landed %d times (%v)", n, err)
		}
	})
}

// warmScript has the server know a script, so that it is sent by its digest.
func warmScript(t *testing.T, b permits, name string) {
	t.Helper()
	must(t, b.ScriptLoad(t.Context(), scriptSources(t)[name]).Err())
}

// Without Redis nobody is told that the permits are taken, although others of this client hold
// some, nor that they were given back. What was given is there when Redis answers again, once.
func TestSemaphores_Outage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb)
		_, hold := acquired(t, t.Context(), locks.Semaphore("pool", 3).Lock, core.LeaseTime(time.Hour))
		plain := locks.PlainSemaphore("plain")
		_, err := plain.TrySetPermits(t.Context(), 1)
		must(t, err)
		must(t, plain.Acquire(t.Context(), 1))
		pass(time.Second)
		proxy.BlackHole(true)
		_, _, err = locks.Semaphore("pool", 3).Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
		wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		wantErr(t, plain.Release(t.Context(), 1), core.ErrUnavailable)
		wantErr(t, plain.Acquire(t.Context(), 1), core.ErrUnavailable)
		proxy.BlackHole(false)
		proxy.Cut()
		pass(10 * time.Second)
		wantGot(t, "permits", 1)(b.Get(t.Context(), "plain").Int())
		released(t, hold)
		b.wantPermits(3, 0)
	})
}

// Holders are notified of nothing by the messages of others: a release costs one script each,
// however many hold.
func TestPermitSemaphore_MessagesAskNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		pool := locks.Semaphore("pool", 3)
		var holds []*core.Hold
		for range 3 {
			_, hold := acquired(t, t.Context(), pool.Lock, core.LeaseTime(time.Hour))
			holds = append(holds, hold)
		}
		got := acquiring(t.Context(), pool.Lock, core.LeaseTime(time.Hour))
		pass(time.Millisecond)
		before := sent.Hits()
		for range 10 {
			b.Publish(t.Context(), semaphoreChannel, "1")
			pass(10 * time.Millisecond)
		}
		if n := sent.Hits() - before; n > 10 {
			t.Errorf("%d scripts for 10 messages, want one attempt each", n)
		}
		released(t, holds[0])
		o := <-got
		must(t, o.err)
		for _, h := range append(holds[1:], o.hold) {
			released(t, h)
		}
		synctest.Wait()
	})
}

// A permit that was lost is noticed at the next renewal, and when all are forced back at once.
func TestPermitSemaphore_Lost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks(core.WithWatchdog(9 * time.Second))
		pool := locks.Semaphore("pool", 2)
		gone, one := acquired(t, t.Context(), pool.Lock)
		stays, two := acquired(t, t.Context(), pool.Lock)
		pass(20 * time.Second)
		wantAlive(t, gone)
		lost := b.ZRange(t.Context(), leases, 0, -1).Val()
		must(t, b.ZAddArgs(t.Context(), leases, redis.ZAddArgs{XX: true, Members: []redis.Z{{Member: lost[0], Score: 1}, {Member: lost[1], Score: 1}}}).Err())
		pass(4 * time.Second)
		wantEnded(t, gone, core.ErrLost)
		wantEnded(t, stays, core.ErrLost)
		wantErr(t, one.Release(t.Context()), core.ErrLost)
		wantErr(t, two.Release(t.Context()), core.ErrLost)
		forced, three := acquired(t, t.Context(), pool.Lock)
		_, err := pool.ForceRelease(t.Context())
		must(t, err)
		pass(time.Second)
		wantEnded(t, forced, core.ErrLost)
		wantErr(t, three.Release(t.Context()), core.ErrLost)
		permits{b}.wantPermits(2, 0)
	})
}
