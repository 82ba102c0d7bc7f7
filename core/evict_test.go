package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// A lock of every kind is freed by its key by somebody who does not know its kind, and it is told who has
// lost it.
func TestEvict_FreesEveryKind(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, operator := b.locks(), b.locks()
		for i, lock := range []core.Lock{
			locks.Lock("plain"), locks.Lock("of{42}"), locks.SpinLock("spin"), locks.FencedLock("fenced"), locks.FairLock("fair"),
			locks.ReadLock("read"), locks.WriteLock("write"), locks.PermitSemaphore("permits", 3).Lock,
		} {
			_, hold := acquired(t, t.Context(), lock)
			e, err := operator.Evict(t.Context(), hold.Key())
			must(t, err)
			if e.Kind == "" || len(e.Holders) != 1 || e.Holders[0].Field != hold.Field() || e.TTL <= 0 {
				t.Errorf("%d, %s: got %+v, want that %s has lost it", i, hold.Key(), e, hold.Field())
			}
			if e := inspected(t, operator, hold.Key()); e.HolderCount != 0 {
				t.Errorf("%s: still held: %+v", hold.Key(), e)
			}
			wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		}
	})
}

// Who waits in another process is notified of an eviction, in the way of each kind.
func TestEvict_NotifiesWaiters(t *testing.T) {
	t.Parallel()
	inEach := map[string]func(*core.Client, string) core.Lock{
		"plain": (*core.Client).Lock, "fair": (*core.Client).FairLock, "write": (*core.Client).WriteLock,
		"permits": func(c *core.Client, name string) core.Lock { return c.PermitSemaphore(name, 1).Lock },
	}
	eachBed(t, func(t *testing.T, b *bed) {
		for name, of := range inEach {
			holding, waiting, operator := b.locks(), b.locks(), b.locks()
			_, _ = acquired(t, t.Context(), of(holding, name), core.LeaseTime(time.Hour))
			got := make(chan error, 1)
			go func() {
				_, _, err := of(waiting, name).Acquire(t.Context(), core.WaitTime(time.Minute))
				got <- err
			}()
			waiters(t, waiting, 1)
			_, err := operator.Evict(t.Context(), name)
			must(t, err)
			must(t, <-got)
		}
	})
}

// A holder of the same client finds out at once.
func TestEvict_OwnHolder(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
		_, err := locks.Evict(t.Context(), "k")
		must(t, err)
		<-ctx.Done()
		wantEnded(t, ctx, core.ErrLost)
	})
}

// A lock is taken from the holder that the operator has seen, and from no later one.
func TestEvict_OnlyFromAHolder(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		e, err := locks.Evict(t.Context(), "k", stranger)
		wantErr(t, err, core.ErrNotHeld)
		if len(e.Holders) != 1 || e.Holders[0].Field != hold.Field() {
			t.Errorf("got %+v, want what is there", e)
		}
		b.wantCount(hold, "1")
		_, err = locks.Evict(t.Context(), "k", stranger, hold.Field())
		must(t, err)
		b.wantGone("k")
		_, err = locks.Evict(t.Context(), "k", stranger)
		wantErr(t, err, core.ErrNotHeld)
	})
}

// A free lock loses nobody, and that is no error.
func TestEvict_Free(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		if e, err := b.locks().Evict(t.Context(), "k"); err != nil || len(e.Holders) != 0 {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

// What is no lock, and a number that nobody holds, stays.
func TestEvict_OfSomethingElse(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		ctx := context.Background()
		for name, put := range map[string]func() error{
			"text":              func() error { return b.Set(ctx, "k", "Ada", 0).Err() },
			"number":            func() error { return b.Set(ctx, "k", "5", 0).Err() },
			"list":              func() error { return b.RPush(ctx, "k", stranger).Err() },
			"sorted set":        func() error { return b.ZAdd(ctx, "k", redis.Z{Score: 1, Member: stranger}).Err() },
			"hash of something": func() error { return b.HSet(ctx, "k", "name", "Ada", "age", "36").Err() },
			"lock and another":  func() error { return b.HSet(ctx, "k", stranger, "1", "name", "Ada").Err() },
		} {
			must(t, put())
			_, err := b.locks().Evict(t.Context(), "k")
			wantOutcome(t, name, err, core.ErrInvalid)
			if b.Exists(ctx, "k").Val() != 1 {
				t.Errorf("%s: deleted", name)
			}
			must(t, b.Del(ctx, "k").Err())
		}
	})
}

// What is freed is what Redisson's forceUnlock frees: readers lose their timeout keys too, permits come
// back, and a writer goes with the readers inside.
func TestEvict_LeavesNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		for range 2 {
			acquired(t, t.Context(), locks.ReadLock("read"))
		}
		writing, _ := acquired(t, t.Context(), locks.WriteLock("write"))
		acquired(t, writing, locks.ReadLock("write"))
		for i := range 2 {
			acquired(t, t.Context(), locks.PermitSemaphore("permits", 2).Lock, core.LeaseTime(time.Duration(i+1)*time.Minute))
		}
		for _, key := range []string{"read", "write", "permits"} {
			e, err := locks.Evict(t.Context(), key)
			must(t, err)
			if len(e.Holders) != 2 || e.HolderCount != 2 {
				t.Errorf("%s: got %+v, want two holders who have lost it", key, e)
			}
		}
		if left := b.Keys(context.Background(), "*").Val(); fmt.Sprint(left) != "[permits]" || b.Get(context.Background(), "permits").Val() != "2" {
			t.Errorf("left: %v", left)
		}
	})
}
