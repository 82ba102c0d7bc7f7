package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A change that has failed is not reported as done when its first reply was lost: nothing is
// remembered of it, and what cannot be read is named.
func TestCounts_FailedChangeAndLostReply(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0", 32)
	changes := map[string]func(ctx context.Context, locks *core.Client) error{
		"set": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore("pool", 0).SetPermits(ctx, 9)
		},
		"add": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore("pool", 0).AddPermits(ctx, 9)
		},
		"release by id": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore("pool", 0).ReleasePermit(ctx, id)
		},
		"release": func(ctx context.Context, locks *core.Client) error {
			return locks.PlainSemaphore("pool").Release(ctx, 9)
		},
		"down": func(ctx context.Context, locks *core.Client) error {
			return locks.CountDownLatch("pool").CountDown(ctx)
		},
	}
	for name, tt := range map[string]struct {
		change string
		ruin   func(b *locktest.Redis)
		why    string
	}{
		"set, leases are none":           {"set", func(b *locktest.Redis) { b.Set(context.Background(), locktest.PermitLeases, "x", 0) }, "not a count"},
		"add, leases are none":           {"add", func(b *locktest.Redis) { b.Set(context.Background(), locktest.PermitLeases, "x", 0) }, "not a count"},
		"release by id, leases are none": {"release by id", func(b *locktest.Redis) { b.Set(context.Background(), locktest.PermitLeases, "x", 0) }, "not a count"},
		"set, no number":                 {"set", notANumber, "not an integer"},
		"add, no number":                 {"add", notANumber, "not an integer"},
		"release, no number":             {"release", notANumber, "not an integer"},
		"down, no number":                {"down", notANumber, "not an integer"},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			for _, script := range []string{"semaphore/clear", "plain_semaphore/clear", "latch/clear"} {
				warmScript(t, locktest.PermitsOf(b), script)
			}
			b.Set(t.Context(), "pool", "4", 0)
			tt.ruin(b)
			before := b.Get(t.Context(), "pool").Val()
			proxy, rdb := faultproxy.Around(t, b.Client)
			rule := proxy.DropReply(faultproxy.Once(locktest.Scripts))
			err := changes[tt.change](t.Context(), locktest.NewClient(t, rdb, locktest.Patient))
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v says nothing of %q", err, tt.why)
			}
			if got := b.Get(t.Context(), "pool").Val(); got != before || rule.Hits() != 1 {
				t.Errorf("the count is %s after %d lost replies, want %s", got, rule.Hits(), before)
			}
			b.WantGone("{pool}:interlock_ops")
		})
	}
}

func notANumber(b *locktest.Redis) { b.Set(context.Background(), "pool", "many", 0) }

// Who asks for what is no number learns that it is none.
func TestCounts_NoNumber(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(locktest.Patient)
		notANumber(b)
		for name, ask := range map[string]func() error{
			"permit": func() error {
				_, _, err := locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
				return err
			},
			"permit of others": func() error {
				_, _, err := locks.Semaphore("pool", 0).Acquire(t.Context(), core.WaitTime(0))
				return err
			},
			"plain": func() error { return locks.PlainSemaphore("pool").Acquire(t.Context(), 1, core.WaitTime(0)) },
			"latch": func() error { return locks.CountDownLatch("pool").Await(t.Context(), core.WaitTime(0)) },
			"count": func() error {
				_, err := locks.PlainSemaphore("pool").Available(t.Context())
				return err
			},
		} {
			err := ask()
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), "not an integer") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		b.WantGone("{pool}:interlock_ops", locktest.PermitLeases)
	})
}
