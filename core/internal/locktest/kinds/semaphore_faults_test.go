package kinds_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The permit of a process that has died becomes free at the end of its lease. A waiter of this library gets the permit.
// So does a waiter of Redisson, which attempts at the deadline that it saw.
func TestPermitSemaphore_CrashedHolder(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		died := b.Locks(core.WithWatchdog(3 * time.Second))
		_, _ = locktest.MustAcquire(t, t.Context(), died.Semaphore("pool", 2).Lock)
		_, other := locktest.MustAcquire(t, t.Context(), b.Locks().Semaphore("pool", 2).Lock)
		got := locktest.GoAcquire(t.Context(), b.Locks().Semaphore("pool", 2).Lock)
		locktest.Pass(10 * time.Second)
		b.WantPermits(0, 2)
		<-locktest.GoClose(died)
		start := time.Now()
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "the permit was free after %s", start, 3*time.Second+10*time.Millisecond)
		locktest.MustRelease(t, other)
		locktest.MustRelease(t, o.Hold)
		b.WantPermits(2, 0)
	})
}

// A lost message does not block a waiter, because the waiter attempts at least once a second.
func TestSemaphores_LostMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		await func(locks *core.Client) error
		opens func(b locktest.Permits)
	}{
		"permit": {
			func(locks *core.Client) error {
				return locks.Semaphore("pool", 0).Do(context.Background(), func(context.Context) error { return nil })
			},
			func(b locktest.Permits) { b.Set(context.Background(), "pool", 1, 0) },
		},
		"plain": {
			func(locks *core.Client) error { return locks.PlainSemaphore("pool").Acquire(context.Background(), 1) },
			func(b locktest.Permits) { b.Set(context.Background(), "pool", 1, 0) },
		},
		"latch": {
			func(locks *core.Client) error { return locks.CountDownLatch("pool").Await(context.Background()) },
			func(b locktest.Permits) { b.Del(context.Background(), "pool") },
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, bed *locktest.Redis) {
			b := locktest.PermitsOf(bed)
			b.Set(t.Context(), "pool", map[bool]int{true: 1, false: 0}[name == "latch"], 0)
			locks := b.Locks()
			done := locktest.Go(func() error { return tt.await(locks) })
			locktest.Pass(10 * time.Second)
			select {
			case err := <-done:
				t.Fatalf("the caller did not wait: %v", err)
			default:
			}
			start := time.Now()
			tt.opens(b)
			locktest.Must(t, <-done)
			locktest.WantSoon(t, "the waiter returned after %s", start, time.Second)
		})
	}
}

// A message wakes a waiter at once, whichever library has sent it.
func TestSemaphores_WokenByRedisson(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		done := locktest.Go(func() error { return locks.PlainSemaphore("pool").Acquire(context.Background(), 2) })
		locktest.Pass(1500 * time.Millisecond)
		start := time.Now()
		b.Set(t.Context(), "pool", 2, 0)
		b.Publish(t.Context(), locktest.PermitChannel, "2")
		locktest.Must(t, <-done)
		locktest.WantSoon(t, "woken after %s", start, 5*time.Millisecond)
	})
}

// Callers of one client get permits in the order in which they came. Callers that want few do not overtake a caller
// that wants many.
func TestSemaphore_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		s := b.Locks().PlainSemaphore("pool")
		_, err := s.TrySetPermits(t.Context(), 1)
		locktest.Must(t, err)
		order := make(chan int, 3)
		for _, n := range []int{3, 1, 2} {
			go func() {
				if err := s.Acquire(context.Background(), n); err == nil {
					order <- n
				}
			}()
			locktest.Pass(time.Millisecond)
		}
		for range 5 {
			locktest.Must(t, s.Release(t.Context(), 1))
			locktest.Pass(100 * time.Millisecond)
		}
		for _, want := range []int{3, 1, 2} {
			if got := <-order; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		locktest.WantGot(t, "Available", 0)(s.Available(t.Context()))
	})
}

// A latch opens at once for all waiters, in two clients, and for later callers.
func TestCountDownLatch_OpensForAll(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		clients := []*core.Client{b.Locks(), b.Locks()}
		_, err := clients[0].CountDownLatch("k").TrySetCount(t.Context(), 3)
		locktest.Must(t, err)
		var all sync.WaitGroup
		var opened time.Time
		for i := range 60 {
			all.Go(func() {
				if err := clients[i%2].CountDownLatch("k").Await(context.Background()); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				if late := time.Since(opened); opened.IsZero() || late > 5*time.Millisecond {
					t.Errorf("waiter %d returned %s after the latch opened", i, late)
				}
			})
		}
		for range 3 {
			locktest.Pass(1500 * time.Millisecond)
			opened = time.Now()
			locktest.Must(t, clients[1].CountDownLatch("k").CountDown(t.Context()))
		}
		all.Wait()
		locktest.Must(t, clients[0].CountDownLatch("k").Await(t.Context(), core.WaitTime(0)))
		for _, c := range clients {
			locktest.WantSame(t, "stats", c.Stats(), core.Stats{})
		}
	})
}

// An operation lands after its caller has left. An acquisition is undone, or does nothing. A release is executed
// once, in the background if necessary.
func TestSemaphore_LandsLate(t *testing.T) {
	t.Parallel()
	for _, late := range []string{"before it is undone", "after that"} {
		locktest.ParallelBubble(t, late, func(t *testing.T, bed *locktest.Redis) {
			b := locktest.PermitsOf(bed)
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks := locktest.NewClient(t, rdb)
			s := locks.PlainSemaphore("pool")
			_, err := s.TrySetPermits(t.Context(), 2)
			locktest.Must(t, err)
			take := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "plain_semaphore/acquire", "pool")))
			undo := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "plain_semaphore/clear", "pool")))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			warmScript(t, b, "plain_semaphore/acquire")
			locktest.WantErr(t, s.Acquire(ctx, 2), core.ErrNotAcquired, context.DeadlineExceeded)
			if late == "after that" {
				undo.Release()
				locktest.Pass(5 * time.Second)
				b.WantPermits(2, 0)
			}
			take.Release()
			locktest.Pass(100 * time.Millisecond)
			undo.Release()
			locktest.Pass(5 * time.Second)
			b.WantPermits(2, 0)
			locktest.Must(t, s.Acquire(t.Context(), 2, core.WaitTime(0)))
			b.WantPermits(0, 0)
		})
	}
}

// An operation that was sent again and was answered is executed once, however late its first command lands and whatever
// happens before that.
func TestSemaphore_FirstSendLandsLate(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		b.Set(t.Context(), "pool", 0, 0)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb)
		s := locks.PlainSemaphore("pool")
		warmScript(t, b, "plain_semaphore/clear")
		locktest.Must(t, s.Release(t.Context(), 1))
		first := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "plain_semaphore/clear", "pool")))
		err := s.Release(t.Context(), 2)
		locktest.Pass(2 * time.Second)
		b.WantPermits(3, 0)
		for range 3 {
			locktest.Must(t, s.Acquire(t.Context(), 1, core.WaitTime(0)))
			locktest.Must(t, s.Release(t.Context(), 1))
		}
		first.Release()
		locktest.Pass(2 * time.Second)
		b.WantPermits(3, 0)
		if n := first.Executed(); n != 1 {
			t.Errorf("the first send landed %d times, want once (%v)", n, err)
		}
	})
}

// warmScript loads a script, so that it is sent by its digest.
func warmScript(t *testing.T, b locktest.Permits, name string) {
	t.Helper()
	locktest.Must(t, b.ScriptLoad(t.Context(), locktest.ScriptSources(t)[name]).Err())
}

// While Redis is silent, no error says that the permits are taken, although callers of this client hold some, and no
// release returns nil. When Redis answers again, each release is executed exactly once.
func TestSemaphores_Outage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Semaphore("pool", 3).Lock, core.LeaseTime(time.Hour))
		plain := locks.PlainSemaphore("plain")
		_, err := plain.TrySetPermits(t.Context(), 1)
		locktest.Must(t, err)
		locktest.Must(t, plain.Acquire(t.Context(), 1))
		locktest.Pass(time.Second)
		proxy.BlackHole(true)
		_, _, err = locks.Semaphore("pool", 3).Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
		locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		locktest.WantErr(t, plain.Release(t.Context(), 1), core.ErrUnavailable)
		locktest.WantErr(t, plain.Acquire(t.Context(), 1), core.ErrUnavailable)
		proxy.BlackHole(false)
		proxy.Cut()
		locktest.Pass(10 * time.Second)
		locktest.WantGot(t, "permits", 1)(b.Get(t.Context(), "plain").Int())
		locktest.MustRelease(t, hold)
		b.WantPermits(3, 0)
	})
}

// Messages of other clients do not make holders ask Redis. A release costs one script, however many holders there are.
func TestPermitSemaphore_MessagesCauseNoQuestions(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		pool := locks.Semaphore("pool", 3)
		var holds []*core.Hold
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), pool.Lock, core.LeaseTime(time.Hour))
			holds = append(holds, hold)
		}
		got := locktest.GoAcquire(t.Context(), pool.Lock, core.LeaseTime(time.Hour))
		locktest.Pass(time.Millisecond)
		before := sent.Hits()
		for range 10 {
			b.Publish(t.Context(), locktest.PermitChannel, "1")
			locktest.Pass(10 * time.Millisecond)
		}
		if n := sent.Hits() - before; n > 10 {
			t.Errorf("%d scripts for 10 messages, want an attempt each", n)
		}
		locktest.MustRelease(t, holds[0])
		o := locktest.Got(t, got)
		for _, h := range append(holds[1:], o.Hold) {
			locktest.MustRelease(t, h)
		}
		synctest.Wait()
	})
}

// The holder of a lost permit learns of the loss at the next renewal, and at once if all permits are forced back.
func TestPermitSemaphore_Lost(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(9 * time.Second))
		pool := locks.Semaphore("pool", 2)
		gone, one := locktest.MustAcquire(t, t.Context(), pool.Lock)
		stays, two := locktest.MustAcquire(t, t.Context(), pool.Lock)
		locktest.Pass(20 * time.Second)
		locktest.WantAlive(t, gone)
		lost := b.ZRange(t.Context(), locktest.PermitLeases, 0, -1).Val()
		locktest.Must(t, b.ZAddArgs(t.Context(), locktest.PermitLeases, redis.ZAddArgs{XX: true, Members: []redis.Z{{Member: lost[0], Score: 1}, {Member: lost[1], Score: 1}}}).Err())
		locktest.Pass(4 * time.Second)
		locktest.WantEnded(t, gone, core.ErrLost)
		locktest.WantEnded(t, stays, core.ErrLost)
		locktest.WantErr(t, one.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, two.Release(t.Context()), core.ErrLost)
		forced, three := locktest.MustAcquire(t, t.Context(), pool.Lock)
		_, err := pool.ForceRelease(t.Context())
		locktest.Must(t, err)
		locktest.Pass(time.Second)
		locktest.WantEnded(t, forced, core.ErrLost)
		locktest.WantErr(t, three.Release(t.Context()), core.ErrLost)
		locktest.PermitsOf(b).WantPermits(2, 0)
	})
}
