package kinds_test

import (
	"regexp"
	"testing"
	"time"

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
			t.Errorf("got %d fields in 5 acquisitions, want 5", len(seen))
		}
	})
}

func TestWire_PrefixIsPartOfKeyAndChannel(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, "redisson_lock__channel:{shop:order:42}")
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithPrefix("shop:")).Lock("order:42"))
		if hold.Key() != "shop:order:42" {
			t.Errorf("key: got %q, want \"shop:order:42\"", hold.Key())
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
			locktest.MustRelease(t, inner) // a partial release sends no message
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
			t.Error("got a hold with an error")
		}
		if e := locktest.NotAcquired(t, err); e.BlockedBy != locktest.Stranger || e.RetryAfter <= 50*time.Second || e.RetryAfter > time.Minute {
			t.Errorf("got %+v, want blocked by the stranger for about a minute", e)
		}
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		b.WantTTL("k", 50*time.Second, time.Minute)
	})
}
