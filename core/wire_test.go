package core_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestWire_HolderFieldIsUUIDAndNumber(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("order:42"))
		form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+$`)
		if !form.MatchString(hold.Field()) || hold.Field()[:36] != locks.ID() {
			t.Errorf("field: got %q, want %s:<n>", hold.Field(), locks.ID())
		}
		b.WantCount(hold, "1")
		b.WantTTL("order:42", 25*time.Second, 30*time.Second)
		locktest.MustRelease(t, hold)
		b.WantGone("order:42")
	})
}

func TestWire_CountIsTwoWhileReentered(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("order:42")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		b.WantCount(outer, "2")
		locktest.MustRelease(t, inner)
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("order:42")
	})
}

func TestWire_FieldIsFreshForEveryAcquisition(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		seen := make(map[string]bool)
		for range 5 {
			_, hold := locktest.MustAcquire(t, t.Context(), l)
			seen[hold.Field()] = true
			locktest.MustRelease(t, hold)
		}
		if len(seen) != 5 {
			t.Errorf("got %d fields in 5 acquisitions", len(seen))
		}
	})
}

func TestWire_PrefixIsPartOfKeyAndChannel(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, "redisson_lock__channel:{shop:order:42}")
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithPrefix("shop:")).Lock("order:42"))
		if hold.Key() != "shop:order:42" {
			t.Errorf("key: got %q", hold.Key())
		}
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
		sub.Want("0")
	})
}

func TestWire_UnlockPublishesZeroOnTheChannel(t *testing.T) {
	t.Parallel()
	for key, channel := range map[string]string{
		"order:42":   "redisson_lock__channel:{order:42}",
		"order:{42}": "redisson_lock__channel:order:{42}",
	} {
		locktest.ParallelEachRedis(t, key, func(t *testing.T, b *locktest.Redis) {
			l := b.Locks().Lock(key)
			sub := b.SubscribeTo(t, channel)
			ctx, outer := locktest.MustAcquire(t, t.Context(), l)
			_, inner := locktest.MustAcquire(t, ctx, l)
			locktest.MustRelease(t, inner) // a partial release publishes nothing
			locktest.MustRelease(t, outer)
			b.Publish(t.Context(), channel, "end")
			sub.Want("0", "end")
		})
	}
}

func TestWire_ForeignHolderIsRespectedAndNamed(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		_, hold, err := b.Locks().Lock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if hold != nil {
			t.Error("got a hold")
		}
		if e := locktest.NotAcquired(t, err); e.BlockedBy != locktest.Stranger || e.RetryAfter <= 50*time.Second || e.RetryAfter > time.Minute {
			t.Errorf("got %+v, want blocked by the stranger for about a minute", e)
		}
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		b.WantTTL("k", 50*time.Second, time.Minute)
	})
}

// The bound is far below the poll interval: it was the message.
func TestWire_ForeignUnlockWakesAWaiter(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		const rounds = 5
		best := time.Hour
		for range rounds {
			b.Take("k", locktest.Stranger, time.Minute)
			got := make(chan time.Time, 1)
			go func() {
				_ = locks.Lock("k").Do(t.Context(), func(context.Context) error {
					got <- time.Now()
					return nil
				})
			}()
			locktest.AwaitWaiters(t, locks, 1)
			b.AwaitListeners("k", 1)
			freed := time.Now()
			b.Free("k")
			best = min(best, (<-got).Sub(freed))
			locktest.Eventually(t, "the lock to be free", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
		}
		if best > locktest.Measured(50*time.Millisecond) {
			t.Errorf("woken %s after the unlock, want 50ms at most", best)
		}
	})
}

// A waiter that speaks Redisson's protocol by hand (subscribe, attempt, wait for a
// message) beside 32 local callers who never leave the lock alone. Only the turns that
// it had to wait for count, and only half of them: a loaded machine may stop anybody for
// longer. What a single wait may be is tested where time is not that of a machine
// (TestTurns_RedissonHasItsShare).
func TestWire_RedissonWaiterBesideLocalOnesGetsItsTurn(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	ctx, stop := context.WithCancel(t.Context())
	done := locktest.KeepBusy(ctx, locks, "k", 32)
	locktest.AwaitWaiters(t, locks, 31)

	waits := make([]time.Duration, 0, 20)
	for len(waits) < cap(waits) {
		if waited := redissonTurn(b, t, "k"); waited > 0 {
			waits = append(waits, waited)
		}
	}
	stop()
	<-done
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > locktest.Measured(50*time.Millisecond) {
		t.Errorf("half of the waits took over %s: %v", median, waits)
	}
}

// redissonTurn takes and frees the lock once as Redisson's RLock does, and says how
// long the wait was; 0 if the first try took it.
func redissonTurn(b *locktest.Redis, t *testing.T, key string) time.Duration {
	t.Helper()
	start := time.Now()
	if redissonTry(b, t, key) {
		b.Free(key)
		return 0
	}
	sub := b.SubscribeTo(t, locktest.ChannelOf(key))
	defer sub.Close()
	for !redissonTry(b, t, key) {
		if _, err := sub.ReceiveTimeout(t.Context(), locktest.HangTimeout); err != nil {
			t.Fatalf("no message: %v", err)
		}
	}
	waited := time.Since(start)
	b.Free(key)
	return waited
}

// redissonTry is one attempt of RLock: re-entrant, count by count.
func redissonTry(b *locktest.Redis, t *testing.T, key string) bool {
	t.Helper()
	err := b.Eval(t.Context(), locktest.RedissonTryLock, []string{key}, 30_000, locktest.Stranger).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return errors.Is(err, redis.Nil)
}
