package core_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A release by id that gets no answer goes on in the background, also when its caller has gone. It
// ends with the first answer, also with that of a permit that is not held.
func TestPermitSemaphore_ReleasePermitInTheBackground(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		proxy, rdb := faultproxy.Around(t, b.Client)
		pool := locktest.NewClient(t, rdb).Semaphore("pool", 0)
		locktest.Must(t, pool.SetPermits(t.Context(), 2))
		id := []byte("0123456789abcdef")
		b.RedissonAcquire(id, locktest.PermitForEver)
		proxy.BlackHole(true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.WantErr(t, pool.ReleasePermit(gone, hex.EncodeToString(id)), core.ErrUnavailable)
		locktest.WantErr(t, pool.ReleasePermit(gone, strings.Repeat("0", 32)), core.ErrUnavailable)
		proxy.BlackHole(false)
		proxy.Cut()
		locktest.Pass(10 * time.Second)
		b.WantPermits(2, 0)
		sent := proxy.Watch(locktest.Scripts)
		locktest.Pass(time.Minute)
		locktest.WantSame(t, "scripts after it was settled", sent.Hits(), 0)
	})
}

// An operation that goes on in the background, and finds there that the count is set already, ends
// with that: it sets nothing when somebody deletes the count later.
func TestCounts_SetAlreadyInTheBackground(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(ctx context.Context, locks *core.Client) (bool, error){
		"semaphore": func(ctx context.Context, locks *core.Client) (bool, error) {
			return locks.PlainSemaphore("pool").TrySetPermits(ctx, 3)
		},
		"permits": func(ctx context.Context, locks *core.Client) (bool, error) {
			return locks.Semaphore("pool", 0).TrySetPermits(ctx, 3)
		},
		"latch": func(ctx context.Context, locks *core.Client) (bool, error) {
			return locks.CountDownLatch("pool").TrySetCount(ctx, 3)
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks := locktest.NewClient(t, rdb)
			b.Set(t.Context(), "pool", 1, 0)
			proxy.BlackHole(true)
			_, err := set(t.Context(), locks)
			locktest.WantErr(t, err, core.ErrUnavailable)
			proxy.BlackHole(false)
			proxy.Cut()
			locktest.Pass(10 * time.Second)
			b.Del(t.Context(), "pool")
			locktest.Pass(time.Minute)
			b.WantGone("pool")
		})
	}
}
