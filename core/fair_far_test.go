package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// listening subscribes a thread of Redisson to its channel.
func (j *fairThread) listening(t *testing.T) (stop func()) {
	t.Helper()
	sub := j.rdb.Subscribe(context.Background(), channelOf(j.key)+":"+j.field)
	_, err := sub.Receive(context.Background())
	must(t, err)
	return func() { _ = sub.Close() }
}

// hangs queues a thread of Redisson that listens, and never comes.
func (b *bed) hangs(key string) (stop func()) {
	b.t.Helper()
	j := b.fairThread(key)
	if taken, _, err := j.try(context.Background()); taken || err != nil {
		b.t.Fatal(taken, err)
	}
	return j.listening(b.t)
}

// A thread of Redisson that hangs is passed over after half a minute, also where the only one who
// waits behind it is far away, so that its looks come less often: then the half minute may begin
// again, once.
func TestFair_FarWaiterBehindOneThatHangs(t *testing.T) {
	t.Parallel()
	for _, rtt := range []time.Duration{time.Millisecond, 110 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		parallelBubble(t, rtt.String(), func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Hour)
			defer b.hangs("k")()
			proxy, rdb := faultproxy.Around(t, b.Client)
			proxy.DelayRequest(script(t, "fair/acquire"), rtt)
			_, got := b.joins(t.Context(), locksOn(t, rdb, patient), "k")
			pass(3 * time.Second)
			b.Del(t.Context(), "k") // without a message
			freed := time.Now()
			o := <-got
			must(t, o.err)
			if took := time.Since(freed); took < 25*time.Second || took > 62*time.Second {
				t.Errorf("the lock was free for %s", took)
			}
			released(t, o.hold)
			b.wantNoQueue("k")
		})
	}
}

// So it is by callers with one attempt.
func TestFair_SeldomCallersBehindOneThatHangs(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
		parallelBubble(t, every.String(), func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Hour)
			defer b.hangs("k")()
			other := b.locks()
			b.Del(t.Context(), "k")
			freed := time.Now()
			for {
				_, hold, err := other.FairLock("k").Acquire(t.Context(), core.WaitTime(0))
				if err == nil {
					released(t, hold)
					break
				}
				wantErr(t, err, core.ErrNotAcquired)
				if time.Since(freed) > 60*time.Second+3*every {
					t.Fatal("nobody has the lock")
				}
				pass(every)
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
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		first, second := b.fairThread("k"), b.fairThread("k")
		for _, j := range []*fairThread{first, second} {
			_, _, err := j.try(t.Context())
			must(t, err)
			defer j.listening(t)()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		behind, got := b.joins(ctx, b.locks(), "k")
		other := b.locks()
		pass(2 * time.Second)
		b.freeFair("k")
		refusedOnce(t, other, "k")
		b.take("k", stranger, time.Hour) // as if the first had been overtaken by one that was there before
		pass(2 * time.Minute)
		b.freeFair("k")
		if taken, _, err := first.try(t.Context()); !taken || err != nil {
			t.Fatal(taken, err)
		}
		first.unlock(t)
		refusedOnce(t, other, "k")
		b.wantQueue("k", second.field, behind)
		cancel()
		wantErr(t, (<-got).err, context.Canceled)
	})
}

// A process with hundreds of waiters has died.
func TestFair_ManyDeadHeads(t *testing.T) {
	t.Parallel()
	const dead = 250
	die := map[string]func(b *bed) (stop func()){
		"of this library": func(b *bed) func() {
			proxy, rdb := faultproxy.Around(b.t, b.Client)
			locks := locksOn(b.t, rdb, patient)
			ctx, cancel := context.WithCancel(context.Background())
			for range dead {
				go func() { _, _, _ = locks.FairLock("k").Acquire(ctx) }()
			}
			eventually(b.t, "all queued", func() bool { return len(b.queued("k")) == dead })
			pass(time.Second)
			proxy.Refuse(true)
			return cancel
		},
		"of Redisson": func(b *bed) func() {
			for range dead {
				_, _, err := b.fairThread("k").try(context.Background())
				must(b.t, err)
			}
			return func() {}
		},
	}
	for name, die := range die {
		parallelBubble(t, fmt.Sprintf("%d %s", dead, name), func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Hour)
			defer die(b)()
			_, got := b.joins(t.Context(), b.locks(), "k")
			pass(5 * time.Second)
			b.freeFair("k")
			b.wantPassedOver("k", got, stall)
		})
	}
}

// One of this library that has died, or hangs, is passed over by one who is far away, too.
func TestFair_FarWaiterBehindADeadOne(t *testing.T) {
	t.Parallel()
	for _, rtt := range []time.Duration{time.Millisecond, 110 * time.Millisecond, 300 * time.Millisecond} {
		for _, hangs := range []bool{false, true} {
			parallelBubble(t, fmt.Sprintf("%s, hangs %t", rtt, hangs), func(t *testing.T, b *bed) {
				b.take("k", stranger, time.Hour)
				dead, rdb := faultproxy.Around(t, b.Client)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.joins(ctx, locksOn(t, rdb, core.WithBackendTimeout(time.Minute)), "k")
				far, rdb := faultproxy.Around(t, b.Client)
				far.DelayRequest(script(t, "fair/acquire"), rtt)
				_, got := b.joins(t.Context(), locksOn(t, rdb, patient), "k")
				pass(time.Second)
				dead.BlackHole(hangs)
				dead.Refuse(!hangs)
				pass(100 * time.Millisecond)
				b.freeFair("k")
				b.wantPassedOver("k", got, stall+2*rtt)
			})
		}
	}
}
