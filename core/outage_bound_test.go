package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// A Redis that answers is waited for, however slow it is; but what has no wait time ends
// within eight backend timeouts in all. Here every answer takes a part of the backend timeout,
// behind those to others on the same connection, and the script is not known any more: so a
// command is sent again and again, and each time it may take long.
func TestOutage_SlowAnswersHaveOneBound(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	background := context.Background()
	for name, operation := range map[string]func(ctx context.Context, hold *core.Hold, locks *core.Client) error{
		"acquire": func(_ context.Context, _ *core.Hold, locks *core.Client) error {
			_, _, err := locks.Lock("other").Acquire(background, core.WaitTime(0))
			return err
		},
		"re-entry": func(ctx context.Context, _ *core.Hold, locks *core.Client) error {
			_, _, err := locks.Lock("held").Acquire(ctx, core.WaitTime(0))
			return err
		},
		"release": func(_ context.Context, hold *core.Hold, _ *core.Client) error { return hold.Release(background) },
		"refresh": func(_ context.Context, hold *core.Hold, _ *core.Client) error {
			return hold.Refresh(background, 2*time.Hour)
		},
		"leave": func(_ context.Context, hold *core.Hold, _ *core.Client) error {
			return hold.Leave(background, time.Minute)
		},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			for delay := timeout / 4; delay < timeout; delay += timeout / time.Duration(thorough.Or(20, 5)) {
				locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
					locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
					ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"), core.LeaseTime(time.Hour))
					locktest.Must(t, b.ScriptFlush(t.Context()).Err())
					slow := proxy.DelayReply(faultproxy.Command("evalsha", "eval"), delay)
					defer slow.Remove()
					for i := range 12 {
						locktest.GoAcquire(t.Context(), locks.Lock(fmt.Sprint("k", i)), core.WaitTime(10*timeout))
						locktest.Pass(timeout / 50)
					}
					start := time.Now()
					err := operation(ctx, hold, locks)
					if took := time.Since(start); took > 8*timeout {
						t.Errorf("every answer takes %s: it took %s: %v", delay, took, err)
					}
				})
			}
		})
	}
}
