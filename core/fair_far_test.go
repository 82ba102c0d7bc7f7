package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// hangs queues a thread of Redisson that listens, and never comes.
func hangInQueue(b *locktest.Redis, key string) (stop func()) {
	b.T.Helper()
	j := b.NewFairThread(key)
	if taken, _, err := j.Try(context.Background()); taken || err != nil {
		b.T.Fatal(taken, err)
	}
	return j.Listen(b.T)
}

// A thread of Redisson that hangs is passed over after half a minute, also where the only one who
// waits behind it is far away, so that its looks come less often: then the half minute may begin
// again, once.
func TestFair_FarWaiterBehindOneThatHangs(t *testing.T) {
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
			o := <-got
			locktest.Must(t, o.Err)
			if took := time.Since(freed); took < 25*time.Second || took > 62*time.Second {
				t.Errorf("the lock was free for %s", took)
			}
			locktest.MustRelease(t, o.Hold)
			b.WantNoQueue("k")
		})
	}
}

// So it is by callers with one attempt.
func TestFair_SeldomCallersBehindOneThatHangs(t *testing.T) {
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
					t.Fatal("nobody has the lock")
				}
				locktest.Pass(every)
			}
			if took := time.Since(freed); took < 25*time.Second {
				t.Errorf("passed over after %s", took)
			}
		})
	}
}

// A thread of Redisson that waits for long is missing from when it is its turn, not from when
// somebody looked at a free lock that was not for it.
func TestFair_RedissonThatWaitsLongHasItsTurn(t *testing.T) {
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
		refusedOnce(t, other, "k")
		b.Take("k", locktest.Stranger, time.Hour) // as if the first had been overtaken by one that was there before
		locktest.Pass(2 * time.Minute)
		b.FreeFair("k")
		if taken, _, err := first.Try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		first.Unlock(t)
		refusedOnce(t, other, "k")
		b.WantQueue("k", second.Field, behind)
		cancel()
		locktest.WantErr(t, (<-got).Err, context.Canceled)
	})
}

// A process with hundreds of waiters has died.
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

// One of this library that has died, or hangs, is passed over by one who is far away, too.
func TestFair_FarWaiterBehindADeadOne(t *testing.T) {
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
