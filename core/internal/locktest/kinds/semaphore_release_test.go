package kinds_test

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

// A release by id without an answer goes on in the background, even after its caller has left. It ends with the first
// answer, even if the answer is that the permit is not held.
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

// An operation in the background ends when it finds the count set already. If a client deletes the count later, the
// operation does not set it again.
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

// A permit can be given back by its id, whether Redisson, another client or this client holds it, with or without a
// lease. The message contains the number of free permits, and the holder finds that its permit is lost.
func TestPermitSemaphore_ReleasePermit(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		locks := b.Locks()
		pool := locks.Semaphore("pool", 0)
		locktest.Must(t, pool.SetPermits(t.Context(), 4))
		sub := b.SubscribeTo(t, locktest.PermitChannel)
		forGood, leased := []byte("\x00\xff{}:\n\r\x7f0123456\x80"), []byte("0123456789abcdef")
		b.RedissonAcquire(forGood, locktest.PermitForEver)
		b.RedissonAcquire(leased, "99999999999999")
		ctx, mine := locktest.MustAcquire(t, t.Context(), pool.Lock, core.LeaseTime(time.Hour))
		_, other := locktest.MustAcquire(t, t.Context(), b.Locks().Semaphore("pool", 0).Lock, core.LeaseTime(time.Hour))
		for i, id := range []string{hex.EncodeToString(forGood), strings.ToUpper(hex.EncodeToString(leased)), other.Field(), mine.Field()} {
			locktest.Must(t, pool.ReleasePermit(t.Context(), id))
			sub.Want(string(rune('1' + i)))
			b.WantPermits(i+1, 3-i)
			locktest.WantErr(t, pool.ReleasePermit(t.Context(), id), core.ErrNotHeld)
			b.WantPermits(i+1, 3-i)
		}
		locktest.AwaitEnd(t, ctx)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, mine.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, other.Release(t.Context()), core.ErrLost)
		locktest.WantSame(t, "Redisson's release of what was given back", b.RedissonRelease(leased), 0)
		b.WantPermits(4, 0)
	})
}

// A permit whose lease has expired is given back, too, but counts as not held, as in Redisson. A permit that was
// never taken is not held, and nothing is recorded.
func TestPermitSemaphore_ReleasePermitThatIsNotHeld(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		pool := b.Locks().Semaphore("pool", 0)
		locktest.Must(t, pool.SetPermits(t.Context(), 1))
		over := []byte("0123456789abcdef")
		b.RedissonAcquire(over, "1")
		locktest.WantErr(t, pool.ReleasePermit(t.Context(), hex.EncodeToString(over)), core.ErrNotHeld)
		b.WantPermits(1, 0)
		locktest.WantErr(t, pool.ReleasePermit(t.Context(), strings.Repeat("0", 32)), core.ErrNotHeld)
		b.WantPermits(1, 0)
		for _, id := range []string{"", "7", strings.Repeat("0", 31), strings.Repeat("0", 33), strings.Repeat("g", 32), strings.Repeat("0", 64)} {
			locktest.WantErr(t, pool.ReleasePermit(t.Context(), id), core.ErrInvalid)
		}
		b.WantPermits(1, 0)
		locktest.Must(t, pool.AddPermits(t.Context(), 1)) // this operation replaces the record of earlier operations
		if ops := b.ZRange(t.Context(), "{pool}:interlock_ops", 0, -1).Val(); len(ops) != 1 {
			t.Errorf("remembered are %q, want the last operation", ops)
		}
		b.HSet(t.Context(), "hash", "field", 1)
		locktest.WantErr(t, b.Locks().Semaphore("hash", 0).ReleasePermit(t.Context(), strings.Repeat("0", 32)), core.ErrUnavailable)
	})
}

// If more permits are taken than the semaphore has now, a permit that is given back does not become free, and no
// message is sent.
func TestPermitSemaphore_ReleasePermitBeyondTheNumber(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		pool := b.Locks().Semaphore("pool", 0)
		locktest.Must(t, pool.SetPermits(t.Context(), 2))
		_, one := locktest.MustAcquire(t, t.Context(), pool.Lock)
		_, two := locktest.MustAcquire(t, t.Context(), pool.Lock)
		locktest.Must(t, pool.SetPermits(t.Context(), 1))
		sub := b.SubscribeTo(t, locktest.PermitChannel)
		locktest.Must(t, pool.ReleasePermit(t.Context(), one.Field()))
		b.WantPermits(0, 1)
		locktest.Must(t, pool.ReleasePermit(t.Context(), two.Field()))
		sub.Want("1")
		b.WantPermits(1, 0)
	})
}

// A release by id wakes a waiter of another client at once.
func TestPermitSemaphore_ReleasePermitWakes(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		locks := b.Locks()
		pool := locks.Semaphore("pool", 1)
		locktest.Must(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1))
		id := []byte("0123456789abcdef")
		b.RedissonAcquire(id, locktest.PermitForEver)
		got := locktest.GoAcquire(context.Background(), b.Locks().Semaphore("pool", 1).Lock)
		locktest.Pass(1500 * time.Millisecond)
		start := time.Now()
		locktest.Must(t, pool.ReleasePermit(t.Context(), hex.EncodeToString(id)))
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "woken after %s", start, 5*time.Millisecond)
		locktest.MustRelease(t, o.Hold)
		b.WantPermits(1, 0)
	})
}
