package inspecting_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Evict frees a lock of every kind by its key, without knowing the kind. It returns the holders that have lost the
// lock.
func TestEvict_FreesEveryKind(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, operator := b.Locks(), b.Locks()
		for i, lock := range []core.Lock{
			locks.Lock("plain"), locks.Lock("of{42}"), locks.SpinLock("spin"), locks.FencedLock("fenced"), locks.FairLock("fair"),
			locks.ReadLock("read"), locks.WriteLock("write"), locks.Semaphore("permits", 3).Lock,
		} {
			_, hold := locktest.MustAcquire(t, t.Context(), lock)
			e, err := operator.Evict(t.Context(), hold.Key(), hold.Field())
			locktest.Must(t, err)
			if e.Kind == "" || len(e.Holders) != 1 || e.Holders[0].Field != hold.Field() || e.TTL <= 0 {
				t.Errorf("%d, %s: got %+v, want that %s has lost it", i, hold.Key(), e, hold.Field())
			}
			if e := locktest.MustInspect(t, operator, hold.Key()); e.HolderCount != 0 {
				t.Errorf("%s: still held: %+v", hold.Key(), e)
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		}
	})
}

// An eviction notifies waiters in other processes, by the message of each kind.
func TestEvict_NotifiesWaiters(t *testing.T) {
	t.Parallel()
	inEach := map[string]func(*core.Client, string) core.Lock{
		"plain": (*core.Client).Lock, "fair": (*core.Client).FairLock, "write": (*core.Client).WriteLock,
		"permits": func(c *core.Client, name string) core.Lock { return c.Semaphore(name, 1).Lock },
	}
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		for name, of := range inEach {
			holding, waiting, operator := b.Locks(), b.Locks(), b.Locks()
			_, hold := locktest.MustAcquire(t, t.Context(), of(holding, name), core.LeaseTime(time.Hour))
			got := make(chan error, 1)
			go func() {
				_, _, err := of(waiting, name).Acquire(t.Context(), core.WaitTime(time.Minute))
				got <- err
			}()
			locktest.AwaitWaiters(t, waiting, 1)
			_, err := operator.Evict(t.Context(), name, hold.Field())
			locktest.Must(t, err)
			locktest.Must(t, <-got)
		}
	})
}

// A holder of the same client learns of the eviction at once.
func TestEvict_OwnHolder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		_, err := locks.Evict(t.Context(), "k", hold.Field())
		locktest.Must(t, err)
		<-ctx.Done()
		locktest.WantEnded(t, ctx, core.ErrLost)
	})
}

// Evict takes a lock only from the holder that the operator has seen, not from a later holder with another field.
func TestEvict_OnlyFromAHolder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		e, err := locks.Evict(t.Context(), "k", locktest.Stranger)
		locktest.WantErr(t, err, core.ErrNotHeld)
		if len(e.Holders) != 1 || e.Holders[0].Field != hold.Field() {
			t.Errorf("got %+v, want the present entry", e)
		}
		b.WantCount(hold, "1")
		_, err = locks.Evict(t.Context(), "k", locktest.Stranger, hold.Field())
		locktest.Must(t, err)
		b.WantGone("k")
		_, err = locks.Evict(t.Context(), "k", locktest.Stranger)
		locktest.WantErr(t, err, core.ErrNotHeld)
	})
}

// If a lock has several holders, only the given holders lose it. The holders are readers, a writer that also reads,
// permits, or more holders than an entry lists.
func TestEvict_OtherHoldersKeepTheLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, operator := b.Locks(), b.Locks()
		for name, tt := range map[string]struct {
			lock core.Lock
			all  int
		}{
			"readers":      {locks.ReadLock("readers"), 6},
			"many readers": {locks.ReadLock("many"), 2*redisstore.MostFound + 1},
			"permits":      {locks.Semaphore("permits", 6).Lock, 6},
		} {
			fields := map[string]bool{}
			var key, seen string
			for range tt.all {
				_, hold := locktest.MustAcquire(t, t.Context(), tt.lock)
				key, seen = hold.Key(), hold.Field()
				fields[seen] = true
			}
			e, err := operator.Evict(t.Context(), key, seen, locktest.Stranger)
			locktest.Must(t, err)
			if len(e.Holders) != 1 || e.Holders[0].Field != seen || e.HolderCount != tt.all {
				t.Errorf("%s: got %+v, want that %s of %d has lost it", name, e, seen, tt.all)
			}
			delete(fields, seen)
			state, err := tt.lock.State(t.Context())
			locktest.Must(t, err)
			if len(state.Holders) != tt.all-1 || !fields[firstOf(state.Holders)] {
				t.Errorf("%s: held by %v, want the other %d", name, state.Holders, tt.all-1)
			}
		}
		writing, writer := locktest.MustAcquire(t, t.Context(), locks.WriteLock("write"))
		_, inside := locktest.MustAcquire(t, writing, locks.ReadLock("write"))
		_, err := operator.Evict(t.Context(), "write", writer.Field())
		locktest.Must(t, err)
		if e := locktest.MustInspect(t, operator, "write"); e.Kind != core.KindRead || len(e.Holders) != 1 || e.Holders[0].Field != inside.Field() {
			t.Errorf("got %+v, want the inner reader", e)
		}
	})
}

func firstOf(holders map[string]int) string {
	for field := range holders {
		return field
	}
	return ""
}

// Evict refuses an empty or invalid holder and sends nothing.
func TestEvict_WithoutAHolder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, plain := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		_, reader := locktest.MustAcquire(t, t.Context(), locks.ReadLock("r"))
		for _, fields := range [][]string{nil, {""}, {"mode"}, {"sku:7"}, {plain.Field(), ""}} {
			for _, key := range []string{"k", "r"} {
				_, err := locks.Evict(t.Context(), key, fields...)
				locktest.WantOutcome(t, fmt.Sprintf("%s %q", key, fields), err, core.ErrInvalid)
			}
		}
		locktest.MustRelease(t, plain)
		locktest.MustRelease(t, reader)
	})
}

// A free lock has no holder that could lose it.
func TestEvict_Free(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		e, err := b.Locks().Evict(t.Context(), "k", locktest.Stranger)
		locktest.WantErr(t, err, core.ErrNotHeld)
		if len(e.Holders) != 0 {
			t.Errorf("got %+v, want no holder", e)
		}
	})
}

// Keys that are not locks, and numbers without holders, stay.
func TestEvict_OfSomethingElse(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx := context.Background()
		for name, put := range map[string]func() error{
			"text":              func() error { return b.Set(ctx, "k", "Ada", 0).Err() },
			"number":            func() error { return b.Set(ctx, "k", "5", 0).Err() },
			"list":              func() error { return b.RPush(ctx, "k", locktest.Stranger).Err() },
			"sorted set":        func() error { return b.ZAdd(ctx, "k", redis.Z{Score: 1, Member: locktest.Stranger}).Err() },
			"hash of something": func() error { return b.HSet(ctx, "k", "name", "Ada", "age", "36").Err() },
			"lock and another":  func() error { return b.HSet(ctx, "k", locktest.Stranger, "1", "name", "Ada").Err() },
			"cart":              func() error { return b.HSet(ctx, "k", "sku:7", "2").Err() },
			"cart with a mode":  func() error { return b.HSet(ctx, "k", "mode", "read", "sku:7", "2").Err() },
		} {
			locktest.Must(t, put())
			_, err := b.Locks().Evict(t.Context(), "k", locktest.Stranger)
			locktest.WantOutcome(t, name, err, core.ErrInvalid)
			if b.Exists(ctx, "k").Val() != 1 {
				t.Errorf("%s: deleted", name)
			}
			locktest.Must(t, b.Del(ctx, "k").Err())
		}
	})
}

// After the eviction of all holders, the same keys are left as after Redisson's forceUnlock. The timeout keys of
// readers are gone, and permits are free again.
func TestEvict_LeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for range 2 {
			locktest.MustAcquire(t, t.Context(), locks.ReadLock("read"))
		}
		writing, _ := locktest.MustAcquire(t, t.Context(), locks.WriteLock("write"))
		locktest.MustAcquire(t, writing, locks.ReadLock("write"))
		for i := range 2 {
			locktest.MustAcquire(t, t.Context(), locks.Semaphore("permits", 2).Lock, core.LeaseTime(time.Duration(i+1)*time.Minute))
		}
		for _, key := range []string{"read", "write", "permits"} {
			seen := locktest.MustInspect(t, locks, key)
			e, err := locks.Evict(t.Context(), key, seen.Holders[0].Field, seen.Holders[1].Field)
			locktest.Must(t, err)
			if len(e.Holders) != 2 || e.HolderCount != 2 {
				t.Errorf("%s: got %+v, want two holders that have lost the lock", key, e)
			}
		}
		if left := b.Keys(context.Background(), "*").Val(); fmt.Sprint(left) != "[permits]" || b.Get(context.Background(), "permits").Val() != "2" {
			t.Errorf("left: %v", left)
		}
	})
}
