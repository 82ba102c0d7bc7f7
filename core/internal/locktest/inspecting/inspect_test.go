package inspecting_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// An entry has the kind, the holder and the lease of a lock. The kind follows from the layout, so kinds with the same
// layout share one name.
func TestInspect_KindAndHolder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, asks := b.Locks(core.WithPrefix("shop:")), b.Locks()
		for _, tt := range []struct {
			lock core.Lock
			opts []core.AcquireOption
			want core.Kind
		}{
			{locks.Lock("plain"), nil, core.KindReentrant},
			{locks.Lock("of{42}"), nil, core.KindReentrant},
			{locks.SpinLock("spin"), nil, core.KindReentrant},
			{locks.FairLock("fair"), nil, core.KindReentrant},
			{locks.FencedLock("fenced"), nil, core.KindFenced},
			{locks.Lock("token"), []core.AcquireOption{core.WithToken()}, core.KindFenced},
			{locks.ReadLock("read"), nil, core.KindRead},
			{locks.WriteLock("write"), nil, core.KindWrite},
			{locks.Semaphore("permits", 3).Lock, nil, core.KindSemaphore},
		} {
			_, hold := locktest.MustAcquire(t, t.Context(), tt.lock, append(tt.opts, core.LeaseTime(time.Minute))...)
			e := locktest.MustInspect(t, asks, hold.Key())
			if e.Kind != tt.want || e.Key != hold.Key() || e.HolderCount != 1 || len(e.Holders) != 1 {
				t.Errorf("%s: got %+v, want kind %s and one holder", hold.Key(), e, tt.want)
				continue
			}
			h := e.Holders[0]
			if h.Field != hold.Field() || h.Count != 1 || h.TTL <= 0 || h.TTL > time.Minute || e.TTL <= 0 || e.TTL > time.Minute || e.Token != hold.Token() {
				t.Errorf("%s: got %+v, want the hold %s with token %d for a minute", hold.Key(), e, hold.Field(), hold.Token())
			}
			if id := h.ClientID(); id != locks.ID() && tt.want != core.KindSemaphore {
				t.Errorf("%s: client id %q, want %q", hold.Key(), id, locks.ID())
			}
			locktest.MustRelease(t, hold)
		}
	})
}

// The entry of a lock that was released, or never existed, has no kind. Inspect returns no error.
func TestInspect_Nothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		if e := locktest.MustInspect(t, b.Locks(), "k"); e.Exists || e.Kind != "" || e.TTL != 0 || e.HolderCount != 0 {
			t.Errorf("got %+v, want nothing", e)
		}
	})
}

// Keys that are not locks have no kind, even if they resemble one.
func TestInspect_OfSomethingElse(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx := context.Background()
		for name, put := range map[string]func() error{
			"text":                  func() error { return b.Set(ctx, "k", "Ada", 0).Err() },
			"long number":           func() error { return b.Set(ctx, "k", strings.Repeat("1", 1000), 0).Err() },
			"list":                  func() error { return b.RPush(ctx, "k", locktest.Stranger).Err() },
			"set":                   func() error { return b.SAdd(ctx, "k", locktest.Stranger).Err() },
			"sorted set":            func() error { return b.ZAdd(ctx, "k", redis.Z{Score: 1, Member: locktest.Stranger}).Err() },
			"hash of something":     func() error { return b.HSet(ctx, "k", "name", "Ada", "age", "36").Err() },
			"hash with a number":    func() error { return b.HSet(ctx, "k", "visits", "36").Err() },
			"hash with a name":      func() error { return b.HSet(ctx, "k", "user:7", "Ada").Err() },
			"hash with a long text": func() error { return b.HSet(ctx, "k", "user:7", strings.Repeat("1", 1000)).Err() },
			"hash with many digits": func() error { return b.HSet(ctx, "k", locktest.Stranger, "99999999999999999999").Err() },
			"a number too large":    func() error { return b.HSet(ctx, "k", locktest.Stranger, "9223372036854775808").Err() },
			"many digits":           func() error { return b.Set(ctx, "k", "-99999999999999999999"[:20], 0).Err() },
			"lock and another":      func() error { return b.HSet(ctx, "k", locktest.Stranger, "1", "name", "Ada").Err() },
			"a mode of something":   func() error { return b.HSet(ctx, "k", "mode", "read", "name", "Ada").Err() },
			"a cart":                func() error { return b.HSet(ctx, "k", "sku:7", "2").Err() },
			"a cart with a mode":    func() error { return b.HSet(ctx, "k", "mode", "read", "sku:7", "2").Err() },
			"another mode":          func() error { return b.HSet(ctx, "k", "mode", "dark", locktest.Stranger, "1").Err() },
			"a long mode":           func() error { return b.HSet(ctx, "k", "mode", strings.Repeat("read", 1000)).Err() },
		} {
			locktest.Must(t, put())
			if e := locktest.MustInspect(t, locks, "k"); !e.Exists || e.Kind != "" || e.HolderCount != 0 {
				t.Errorf("%s: got %+v, want no kind", name, e)
			}
			locktest.Must(t, b.Del(ctx, "k").Err())
		}
	})
}

// The entry of a fair lock has its queue in order, even without a holder.
func TestInspect_QueueOfAFairLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		holding, waiting := b.Locks(), b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), holding.FairLock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		at := make(chan error, 2)
		for n := range 2 {
			go func() {
				_, _, err := waiting.FairLock("k").Acquire(ctx, core.WaitTime(time.Minute))
				at <- err
			}()
			locktest.Eventually(t, "a place in the queue", func() bool { return locktest.MustInspect(t, holding, "k").WaiterCount == n+1 })
		}
		e := locktest.MustInspect(t, holding, "k")
		want := b.LRange(context.Background(), "redisson_lock_queue:{k}", 0, -1).Val()
		if e.Kind != core.KindFair || e.Holders[0].Field != hold.Field() || fmt.Sprint(e.Waiters) != fmt.Sprint(want) {
			t.Errorf("got %+v, want a fair lock of %s with the queue %v", e, hold.Field(), want)
		}
		cancel()
		for range 2 {
			locktest.WantErr(t, <-at, core.ErrNotAcquired)
		}
		locktest.MustRelease(t, hold)

		locktest.Must(t, b.RPush(context.Background(), "redisson_lock_queue:{gone}", locktest.Stranger).Err())
		if e := locktest.MustInspect(t, holding, "gone"); e.Kind != core.KindFair || e.HolderCount != 0 || e.WaiterCount != 1 || e.TTL != 0 {
			t.Errorf("without a holder: got %+v, want a fair lock with one waiter", e)
		}
	})
}

// Readers have separate leases. A reader whose timeout keys are gone is dead and is not listed.
func TestInspect_Readers(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, short := locktest.MustAcquire(t, t.Context(), locks.ReadLock("k"), core.LeaseTime(time.Minute))
		_, long := locktest.MustAcquire(t, t.Context(), locks.ReadLock("k"), core.LeaseTime(time.Hour))
		e := locktest.MustInspect(t, locks, "k")
		if e.Kind != core.KindRead || e.HolderCount != 2 || len(e.Holders) != 2 || e.TTL < 50*time.Minute {
			t.Fatalf("got %+v, want two readers for an hour", e)
		}
		for _, h := range e.Holders {
			if isLong := h.TTL > 2*time.Minute; isLong != (h.Field == long.Field()) || !isLong && h.Field != short.Field() {
				t.Errorf("holder %+v: %s has a minute, %s an hour", h, short.Field(), long.Field())
			}
		}
		locktest.Must(t, b.Del(context.Background(), "{k}:"+short.Field()+":rwlock_timeout:1").Err())
		if e := locktest.MustInspect(t, locks, "k"); e.HolderCount != 1 || e.Holders[0].Field != long.Field() {
			t.Errorf("after the end of one: got %+v, want the other", e)
		}
		locktest.MustRelease(t, long)
	})
}

// A writer that also reads counts as two holders.
func TestInspect_WriterThatReads(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("k"), core.LeaseTime(time.Minute))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("k"), core.LeaseTime(time.Hour))
		e := locktest.MustInspect(t, locks, "k")
		if e.Kind != core.KindWrite || e.HolderCount != 2 {
			t.Fatalf("got %+v, want a writer and its inner reader", e)
		}
		for _, h := range e.Holders {
			if writes := h.TTL < 2*time.Minute; writes != (h.Field == w.Field()) || h.ClientID() != locks.ID() {
				t.Errorf("holder %+v: the writer %s has a minute, %s an hour", h, w.Field(), r.Field())
			}
		}
		locktest.MustRelease(t, r)
		locktest.MustRelease(t, w)
	})
}

// An entry lists a bounded number of holders and waiters, and the number of all.
func TestInspect_OfVeryManyIsBounded(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		const many = 3000
		ctx := context.Background()
		readers, waiters := map[string]any{"mode": "read"}, []any{}
		var permits []redis.Z
		for i := range many {
			field := fmt.Sprintf("%s%d", strings.TrimSuffix(locktest.Stranger, "57"), i)
			readers[field] = 1
			waiters = append(waiters, field)
			permits = append(permits, redis.Z{Score: 922337203685477, Member: fmt.Sprintf("%016d", i)})
		}
		locktest.Must(t, b.HSet(ctx, "read", readers).Err())
		locktest.Must(t, b.RPush(ctx, "redisson_lock_queue:{fair}", waiters...).Err())
		locktest.Must(t, b.Set(ctx, "permits", 7, 0).Err())
		locktest.Must(t, b.ZAdd(ctx, "{permits}:timeout", permits...).Err())
		locks := b.Locks()
		if e := locktest.MustInspect(t, locks, "read"); e.HolderCount != many || len(e.Holders) < 1 || len(e.Holders) > redisstore.MostFound {
			t.Errorf("readers: got %d of %d", len(e.Holders), e.HolderCount)
		}
		if e := locktest.MustInspect(t, locks, "fair"); e.WaiterCount != many || len(e.Waiters) != redisstore.MostFound {
			t.Errorf("waiters: got %d of %d", len(e.Waiters), e.WaiterCount)
		}
		if e := locktest.MustInspect(t, locks, "permits"); e.HolderCount != many || len(e.Holders) != redisstore.MostFound || e.Available != 7 || e.TTL >= 0 || e.Holders[0].TTL >= 0 {
			t.Errorf("permits: got %d of %d, and %d left for %s", len(e.Holders), e.HolderCount, e.Available, e.TTL)
		}
	})
}

// A number may be a plain semaphore, a latch or anything else. It has no holders.
func TestInspect_Numbers(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, err := locks.PlainSemaphore("s").TrySetPermits(t.Context(), 5)
		locktest.Must(t, err)
		_, err = locks.CountDownLatch("l").TrySetCount(t.Context(), 3)
		locktest.Must(t, err)
		for key, want := range map[string]int64{"s": 5, "l": 3} {
			if e := locktest.MustInspect(t, locks, key); e.Kind != core.KindPlainSemaphore || e.Available != want || e.HolderCount != 0 || e.TTL >= 0 {
				t.Errorf("%s: got %+v, want %d without holders", key, e, want)
			}
		}
	})
}

// Inspect refuses a key that no lock can have, and a closed client refuses every question.
func TestInspect_Refusals(t *testing.T) {
	t.Parallel()
	locks := locktest.Embedded(t).Locks()
	_, err := locks.Inspect(t.Context(), "")
	locktest.WantErr(t, err, core.ErrInvalid)
	locktest.Must(t, locks.Close(t.Context()))
	_, err = locks.Inspect(t.Context(), "k")
	locktest.WantErr(t, err, core.ErrClosed)
	_, err = locks.Evict(t.Context(), "k")
	locktest.WantErr(t, err, core.ErrClosed)
	_, err = locks.Locks(t.Context(), core.LockQuery{})
	locktest.WantErr(t, err, core.ErrClosed)
}
