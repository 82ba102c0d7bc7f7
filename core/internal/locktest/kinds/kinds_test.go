package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// While a client holds a lock or waits for it, its name belongs to one kind. An acquisition of another kind is refused
// before Redis is asked.
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
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, sent := b.Counted()
			if err := call(locks); err != nil {
				t.Fatalf("the name is free, but another kind is refused: %v", err)
			}
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			before := sent.Hits()
			locktest.WantErr(t, call(locks), core.ErrInvalid)
			locktest.WantSame(t, "scripts", sent.Hits()-before, 0)
			locktest.MustRelease(t, hold)
			locktest.WantOK(t, call(locks))
			b.Take("k", locktest.Stranger, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			done := locktest.KeepBusy(ctx, locks, "k", 1)
			locktest.AwaitWaiters(t, locks, 1)
			locktest.WantErr(t, call(locks), core.ErrInvalid)
			cancel()
			<-done
			locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
		})
	}
}

// A MultiLock is refused if the client holds one of its keys as another kind.
func TestKinds_OneForEachNameOfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.SpinLock("b"))
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantErr(t, err, core.ErrInvalid)
		}
		b.WantGone("a")
		locktest.MustRelease(t, hold)
		_, both := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b"))
		locktest.MustRelease(t, both)
	})
}

// Operations on a count refuse a key of another type, and a name that this client holds as another kind.
func TestKinds_CountIsNotALock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		mine, others := b.Locks(), b.Locks()
		_, lock := locktest.MustAcquire(t, t.Context(), mine.Lock("k"))
		_, err := mine.CountDownLatch("k").Delete(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		_, err = others.CountDownLatch("k").Delete(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		b.WantCount(lock, "1")
		locktest.WantErr(t, mine.CountDownLatch("k").CountDown(t.Context()), core.ErrInvalid)
		locktest.MustRelease(t, lock)

		pool := mine.Semaphore("pool", 2)
		_, permit := locktest.MustAcquire(t, t.Context(), pool.Lock)
		locktest.WantErr(t, mine.CountDownLatch("pool").CountDown(t.Context()), core.ErrInvalid)
		locktest.WantErr(t, mine.PlainSemaphore("pool").Release(t.Context(), 5), core.ErrInvalid)
		_, err = mine.CountDownLatch("pool").Delete(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantGot(t, "free", 1)(pool.Available(t.Context()))
		locktest.MustRelease(t, permit)
	})
}

const tokens = "redisson_lock_token:{order:42}"

type tokenRecorder struct {
	acquired core.AcquireResult
	ended    core.HoldResult
}

func (r *tokenRecorder) observer() *core.Observer {
	return &core.Observer{AcquireEnd: r.observeAcquireEnd, HoldEnd: r.observeHoldEnd}
}

func (r *tokenRecorder) observeAcquireEnd(_ context.Context, a core.AcquireResult) { r.acquired = a }

func (r *tokenRecorder) observeHoldEnd(_ context.Context, h core.HoldResult) { r.ended = h }

// A context that holds a name as one kind cannot re-enter it as another kind.
func TestKinds_OneNameIsForOneKind(t *testing.T) {
	t.Parallel()
	b := locktest.Embedded(t)
	locks := b.Locks()
	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	_, _, err := locks.FencedLock("k").Acquire(ctx)
	locktest.WantErr(t, err, core.ErrInvalid)
	locktest.MustRelease(t, hold)
}

// If a context holds one of the keys of a MultiLock as another kind, the MultiLock is refused and takes nothing.
func TestKinds_ReentryByAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.FencedLock("b"))
		before := sent.Hits()
		_, _, err := locks.MultiLock("a", "b").Acquire(ctx, core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantSame(t, "scripts", sent.Hits()-before, 0)
		b.WantGone("a")
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
	})
}
