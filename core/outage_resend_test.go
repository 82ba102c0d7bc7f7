package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A command whose connection breaks is made again, and has another backend timeout then,
// but no third: a Redis that answers pings and no scripts costs less than two of them.
func TestOutage_ResendHasOneMoreTimeout(t *testing.T) {
	t.Parallel()
	const timeout, broken = time.Second, 900 * time.Millisecond
	for name, operation := range map[string]func(context.Context, *core.Hold, core.Lock) error{
		"acquire": func(ctx context.Context, _ *core.Hold, other core.Lock) error {
			_, _, err := other.Acquire(ctx, core.WaitTime(0))
			return err
		},
		"waiting acquire": func(ctx context.Context, _ *core.Hold, other core.Lock) error {
			_, _, err := other.Acquire(ctx, core.WaitTime(time.Minute))
			return err
		},
		"release": func(ctx context.Context, hold *core.Hold, _ core.Lock) error { return hold.Release(ctx) },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"), core.LeaseTime(time.Hour))
			rule := proxy.HoldReply(faultproxy.Command("evalsha"))
			cut := time.AfterFunc(broken, proxy.Cut)
			defer cut.Stop()
			start := time.Now()
			locktest.WantErr(t, operation(t.Context(), hold, locks.Lock("other")), core.ErrUnavailable)
			if took := time.Since(start); took < broken || took > 2*timeout {
				t.Errorf("it took %s", took)
			}
			rule.Remove()
		})
	}
}
