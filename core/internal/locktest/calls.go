package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// MustNew returns a lock client that the test closes.
func MustNew(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	Must(t, err)
	return locks
}

// MustAcquire acquires a lock.
func MustAcquire(t *testing.T, ctx context.Context, l core.Lock, opts ...core.AcquireOption) (context.Context, *core.Hold) {
	t.Helper()
	ctx, hold, err := l.Acquire(ctx, opts...)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return ctx, hold
}

// AcquireAcknowledged acquires a lock whose client has WithReplicaAcks. It tries again while too few replicas acknowledge
// in time, because a replica may be slow.
func AcquireAcknowledged(t *testing.T, l core.Lock, opts ...core.AcquireOption) (context.Context, *core.Hold) {
	t.Helper()
	for end := time.Now().Add(HangTimeout); ; {
		ctx, hold, err := l.Acquire(t.Context(), opts...)
		if _, short := errors.AsType[*core.ReplicationError](err); short && time.Now().Before(end) {
			continue
		}
		Must(t, err)
		return ctx, hold
	}
}

// MustRelease releases a hold.
func MustRelease(t *testing.T, h *core.Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Errorf("release of %s: %v", h.Key(), err)
	}
}

// MustClose closes a client whose holds have all been released.
func MustClose(t *testing.T, locks *core.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	WantOK(t, locks.Close(ctx))
}

// MustInspect inspects a key.
func MustInspect(t *testing.T, locks *core.Client, key string) core.LockEntry {
	t.Helper()
	e, err := locks.Inspect(t.Context(), key)
	Must(t, err)
	return e
}

// Outcome is the result of an Acquire in another goroutine.
type Outcome struct {
	Ctx  context.Context //nolint:containedctx // a result
	Hold *core.Hold
	Err  error
	Took time.Duration
}

// GoAcquire starts an Acquire.
func GoAcquire(ctx context.Context, lock core.Lock, opts ...core.AcquireOption) <-chan Outcome {
	got := make(chan Outcome, 1)
	start := time.Now()
	go func() {
		ctx, hold, err := lock.Acquire(ctx, opts...)
		got <- Outcome{ctx, hold, err, time.Since(start)}
	}()
	return got
}

// Got waits for an Acquire that GoAcquire has started and that must succeed.
func Got(t *testing.T, pending <-chan Outcome) Outcome {
	t.Helper()
	select {
	case o := <-pending:
		Must(t, o.Err)
		return o
	case <-time.After(HangTimeout):
		t.Fatal("never acquired")
		return Outcome{}
	}
}

// Go starts a call and returns a channel that gets its error.
func Go(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// GoRelease starts a Release.
func GoRelease(hold *core.Hold) <-chan error {
	return Go(func() error { return hold.Release(context.Background()) })
}

// GoClose starts a Close whose context has ended. Holds stay in Redis, as after a crash of the process.
func GoClose(locks *core.Client) <-chan error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return Go(func() error { return locks.Close(ended) })
}

// AcquiredAt takes and frees a lock in another goroutine. It sends the time at which it had the lock.
func AcquiredAt(t *testing.T, locks *core.Client, name string) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		var now time.Time
		err := locks.Lock(name).Do(t.Context(), func(context.Context) error {
			now = time.Now()
			return nil
		})
		WantOK(t, err)
		at <- now
	}()
	return at
}

// JoinQueue starts an Acquire of a fair lock that has to wait. It returns the field of the waiter in the queue.
func (b *Redis) JoinQueue(ctx context.Context, locks *core.Client, key string, opts ...core.AcquireOption) (string, <-chan Outcome) {
	b.T.Helper()
	before := len(b.Queued(key))
	got := GoAcquire(ctx, locks.FairLock(key), opts...)
	Eventually(b.T, "queued", func() bool { return len(b.Queued(key)) > before })
	return b.Queued(key)[before], got
}

// AwaitWaiters waits until n callers of a client wait for locks.
func AwaitWaiters(t *testing.T, locks *core.Client, n int) {
	t.Helper()
	Eventually(t, "the expected number of waiters", func() bool { return locks.Stats().Waiters == n })
}

// WaysToLeave returns the ways to leave an Acquire before its end, each with its error.
func WaysToLeave() map[string]error {
	return map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled, "wait time": core.ErrUnavailable}
}

// Leaving returns the arguments of an Acquire that ends early, in one of WaysToLeave. It ends after some time.
func Leaving(t *testing.T, way string, after time.Duration) (context.Context, []core.AcquireOption) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	switch way {
	case "deadline":
		ctx, cancel = context.WithTimeout(ctx, after)
		t.Cleanup(cancel)
	case "cancel":
		time.AfterFunc(after, cancel)
	case "wait time":
		return ctx, []core.AcquireOption{core.WaitTime(after)}
	default:
		t.Fatalf("way to leave %q does not exist", way)
	}
	return ctx, nil
}
