package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/history"
)

// limitsOf returns the limits of a run.
func limitsOf(l history.Limits) history.Limits {
	l.Permits = make(map[string]int)
	for _, key := range semaphores {
		l.Permits[key] = permits
	}
	return l
}

// forgotten is when a fair lock has forgotten the missing waiters of its queue.
const forgotten = 2 * time.Second

// visit makes a separate client without faults.
func visit(t *testing.T, rdb *redis.Client, do func(ctx context.Context, locks *core.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	locks, err := core.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	if err := do(ctx, locks); err != nil {
		t.Error(err)
	}
	if err := locks.Close(ctx); err != nil {
		t.Error(err)
	}
}

// prepare gives the semaphores their permits.
func prepare(ctx context.Context, locks *core.Client) error {
	for _, key := range semaphores {
		if err := locks.Semaphore(key, 0).SetPermits(ctx, permits); err != nil {
			return err
		}
	}
	return nil
}

// lookAfter clears up the remains of dead processes: places in the queue of a fair lock, and permits
// whose lease has ended.
func lookAfter(ctx context.Context, locks *core.Client) error {
	nothing := func(context.Context) error { return nil }
	for _, key := range []string{keys[11], keys[16]} {
		if err := locks.FairLock(key).Do(ctx, nothing); err != nil {
			return err
		}
	}
	for _, key := range semaphores {
		if _, err := locks.Semaphore(key, 0).Available(ctx); err != nil {
			return err
		}
	}
	return nil
}
