package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_StoppedRedis_AbandonedAcquireDoesNotRise stops Redis while an acquire
// is under way, gives it up, and continues Redis: the abandoned command lands late,
// before or after a newer acquisition was granted and released. The lock must not
// rise from the dead.
func TestFault_StoppedRedis_AbandonedAcquireDoesNotRise(t *testing.T) {
	t.Parallel()
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	server := redisserver.Start(t)
	direct := server.Client()
	for round := range rounds {
		// Two clients with pools of their own, so that connections queue unevenly.
		a, b := locktest.MustNew(t, server.Client(), locktest.Patient), locktest.MustNew(t, server.Client(), locktest.Patient)
		locktest.Warm(t, a, b)
		key := fmt.Sprintf("stopped:%d", round)
		server.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, _, err := a.Lock(key).Acquire(ctx, core.LeaseTime(30*time.Second))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("round %d: acquire on a stopped server: %v", round, err)
		}
		newer := make(chan error, 1)
		go func() {
			newer <- b.Lock(key).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(30*time.Second))
		}()
		server.Continue()
		if err := <-newer; err != nil {
			t.Fatalf("round %d: acquire after the stop: %v", round, err)
		}
		locktest.WithinASecond(t, fmt.Sprintf("round %d: no key left", round), func() bool {
			return direct.Exists(context.Background(), key).Val() == 0
		})
		locktest.MustClose(t, a)
		locktest.MustClose(t, b)
	}
}

