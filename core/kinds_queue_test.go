package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// As long as a client holds a name, or waits for it, it is of one kind: another one is a
// mistake, which is found before Redis is asked.
func TestKinds_OneForEachName(t *testing.T) {
	t.Parallel()
	calls := map[string]func(locks *core.Client) error{
		"try": func(locks *core.Client) error {
			return locks.FencedLock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(0))
		},
		"wait": func(locks *core.Client) error {
			return locks.FencedLock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		},
	}
	for name, call := range calls {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, sent := b.counted()
			if err := call(locks); err != nil {
				t.Fatalf("a name that nobody uses: %v", err)
			}
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			before := sent.Hits()
			wantErr(t, call(locks), core.ErrInvalid)
			wantSame(t, "scripts", sent.Hits()-before, 0)
			released(t, hold)
			wantOK(t, call(locks))
			b.take("k", stranger, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			done := busyCallers(ctx, locks, "k", 1)
			waiters(t, locks, 1)
			wantErr(t, call(locks), core.ErrInvalid)
			cancel()
			<-done
			wantSame(t, "stats", locks.Stats(), core.Stats{})
		})
	}
}

// So it is for one of several keys.
func TestKinds_OneForEachNameOfAMultiLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.SpinLock("b"))
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrInvalid)
		}
		b.wantGone("a")
		released(t, hold)
		_, both := acquired(t, t.Context(), locks.MultiLock("a", "b"))
		released(t, both)
	})
}

// What changes a count leaves alone what is none, and what this client holds as another kind.
func TestKinds_ACountIsNoOtherKind(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		mine, others := b.locks(), b.locks()
		_, lock := acquired(t, t.Context(), mine.Lock("k"))
		_, err := mine.CountDownLatch("k").Delete(t.Context())
		wantErr(t, err, core.ErrInvalid)
		_, err = others.CountDownLatch("k").Delete(t.Context())
		wantErr(t, err, core.ErrUnavailable)
		b.wantCount(lock, "1")
		wantErr(t, mine.CountDownLatch("k").CountDown(t.Context()), core.ErrInvalid)
		released(t, lock)

		pool := mine.Semaphore("pool", 2)
		_, permit := acquired(t, t.Context(), pool.Lock)
		wantErr(t, mine.CountDownLatch("pool").CountDown(t.Context()), core.ErrInvalid)
		wantErr(t, mine.PlainSemaphore("pool").Release(t.Context(), 5), core.ErrInvalid)
		_, err = mine.CountDownLatch("pool").Delete(t.Context())
		wantErr(t, err, core.ErrInvalid)
		wantGot(t, "free", 1)(pool.Available(t.Context()))
		released(t, permit)
	})
}
