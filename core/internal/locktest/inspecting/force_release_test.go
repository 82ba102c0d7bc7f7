package inspecting_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// ForceRelease and State of every kind refuse a hash that is not a lock, and a zset in the place of the permits of a
// semaphore.
func TestForceRelease_OfACart(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, ctx := b.Locks(), context.Background()
		locktest.Must(t, b.HSet(ctx, "cart:43", "sku:7", 2).Err())
		locktest.Must(t, b.HSet(ctx, "theme:43", "mode", "read", "sku:7", 2).Err())
		locktest.Must(t, b.HSet(ctx, "dark:43", "mode", "write", "sku:7:write", 2).Err())
		locktest.Must(t, b.Set(ctx, "stock:43", 5, 0).Err())
		locktest.Must(t, b.ZAdd(ctx, "{stock:43}:timeout", redis.Z{Score: 1 << 50, Member: "sku:7"}).Err())
		before := b.Keys(ctx, "*").Val()
		for name, lock := range map[string]core.Lock{
			"plain": locks.Lock("cart:43"), "spin": locks.SpinLock("cart:43"), "fenced": locks.FencedLock("cart:43"), "fair": locks.FairLock("cart:43"),
			"read": locks.ReadLock("theme:43"), "write": locks.WriteLock("dark:43"), "permits": locks.Semaphore("stock:43", 5).Lock,
		} {
			freed, err := lock.ForceRelease(t.Context())
			locktest.WantOutcome(t, name, err, core.ErrUnavailable)
			state, err := lock.State(t.Context())
			locktest.WantOutcome(t, name, err, core.ErrUnavailable)
			if freed || len(state.Holders) != 0 || len(b.Keys(ctx, "*").Val()) != len(before) {
				t.Errorf("%s: freed %t, state %+v, want an error and an unchanged key", name, freed, state)
			}
		}
	})
}

// ForceRelease frees only a lock. A key of another type stays and is an error.
func TestForceRelease_OfSomethingElse(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx := context.Background()
		for name, put := range map[string]func() error{
			"string":               func() error { return b.Set(ctx, "k", "1", 0).Err() },
			"list":                 func() error { return b.RPush(ctx, "k", locktest.Stranger).Err() },
			"set":                  func() error { return b.SAdd(ctx, "k", locktest.Stranger).Err() },
			"sorted set":           func() error { return b.ZAdd(ctx, "k", redis.Z{Score: 1, Member: locktest.Stranger}).Err() },
			"hash of something":    func() error { return b.HSet(ctx, "k", "name", "Ada", "age", "36").Err() },
			"hash with a number":   func() error { return b.HSet(ctx, "k", "visits", "36").Err() },
			"hash with a name":     func() error { return b.HSet(ctx, "k", "user:7", "Ada").Err() },
			"lock and another":     func() error { return b.HSet(ctx, "k", locktest.Stranger, "1", "name", "Ada").Err() },
			"Redisson's read lock": func() error { return b.HSet(ctx, "k", "mode", "read", locktest.Stranger, "1").Err() },
		} {
			locktest.Must(t, put())
			if freed, err := l.ForceRelease(t.Context()); freed {
				t.Errorf("%s: freed", name)
			} else {
				locktest.WantOutcome(t, name, err, core.ErrUnavailable)
			}
			if b.Exists(ctx, "k").Val() != 1 {
				t.Errorf("%s: deleted", name)
			}
			locktest.Must(t, b.Del(ctx, "k").Err())
		}
		for name, field := range map[string]string{"Redisson's": locktest.Stranger, "a marker of Leave": b.Locks().ID() + ":12"} {
			locktest.Must(t, b.HSet(ctx, "k", field, 2).Err())
			if freed, err := l.ForceRelease(t.Context()); !freed || err != nil {
				t.Errorf("%s: got %v, %v", name, freed, err)
			}
		}
	})
}

func TestForceRelease_FreesAndWakes(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		one, two := b.Locks(), b.Locks()
		locktest.WantGot(t, "free", false)(two.Lock("k").ForceRelease(t.Context()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), one.Lock("k"))
		next := make(chan *core.Hold, 1)
		go func() {
			_, h, _ := one.Lock("k").Acquire(t.Context())
			next <- h
		}()
		locktest.AwaitWaiters(t, one, 1)
		b.AwaitListeners("k", 1)
		locktest.WantGot(t, "held", true)(two.Lock("k").ForceRelease(t.Context()))
		got := <-next
		<-ctx.Done()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantCount(got, "1")
		locktest.MustRelease(t, got)
	})
}
