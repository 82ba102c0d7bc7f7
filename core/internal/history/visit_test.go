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

// forgotten is the time after which a fair lock has removed all missing waiters from its queue.
const forgotten = 2 * time.Second

// visit calls do with a separate client that no fault affects.
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

// prepare sets the numbers of permits of the semaphores.
func prepare(ctx context.Context, locks *core.Client) error {
	for _, key := range semaphores {
		if err := locks.Semaphore(key, 0).SetPermits(ctx, permits); err != nil {
			return err
		}
	}
	return nil
}

// lookAfter removes the remains of dead processes: places in the queues of fair locks, and permits whose
// leases have expired.
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
