package kinds_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Locks of a group exclude each other if they have a value in common, within a client and between clients. Values may
// come in any order and repeat.
func TestGroup_ValuesExclude(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "b", "a", "b"))
		for _, other := range []*core.Client{locks, b.Locks()} {
			for _, values := range [][]string{{"a"}, {"b"}, {"b", "c"}, {"a", "b"}, {"c", "d", "a"}} {
				_, _, err := other.GroupLock("g", values...).Acquire(t.Context(), core.WaitTime(0))
				locktest.WantErr(t, err, core.ErrNotAcquired)
			}
			for _, free := range []core.Lock{other.GroupLock("g", "c"), other.GroupLock("g", "c", "d"), other.GroupLock("h", "a", "b")} {
				_, apart := locktest.MustAcquire(t, t.Context(), free, core.WaitTime(0))
				locktest.MustRelease(t, apart)
			}
		}
		waiting := locktest.GoAcquire(t.Context(), locks.GroupLock("g", "b", "c"))
		elsewhere := locktest.GoAcquire(t.Context(), b.Locks().GroupLock("g", "a"))
		_, again := locktest.MustAcquire(t, ctx, locks.GroupLock("g", "a", "b"), core.WaitTime(0))
		locktest.MustRelease(t, again)
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
		locktest.MustRelease(t, locktest.Got(t, elsewhere).Hold)
		b.WantFreed("g")
	})
}

// A lock of several values takes all of them by one script, or none. A context that carries some of the values re-enters
// these.
func TestGroup_AllOrNothing(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.LoadScripts()
		ctx, one := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "b"))
		before := b.HGetAll(t.Context(), "g").Val()
		_, _, err := b.Locks().GroupLock("g", "a", "b", "c").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSame(t, "blocked by", locktest.NotAcquired(t, err).BlockedBy, one.Field())
		b.WantHolders("g", before)

		sendings := sent.Hits()
		_, all := locktest.MustAcquire(t, ctx, locks.GroupLock("g", "a", "b", "c"))
		locktest.WantSame(t, "scripts for two free values and a re-entry", sent.Hits()-sendings, 2)
		locktest.WantSame(t, "fields", len(b.HKeys(t.Context(), "g").Val()), 9)
		locktest.MustRelease(t, all)
		b.WantHolders("g", before)
		locktest.MustRelease(t, one)
		b.WantGone("g")
	})
}

// redissonField is the holder of values that Redisson has taken.
const redissonField = locktest.RedissonField + "3"

// takeAsRedisson writes values of a group as Redisson does.
func takeAsRedisson(b *locktest.Redis, group string, lease time.Duration, values ...string) {
	b.T.Helper()
	for _, v := range values {
		b.HSet(context.Background(), group, v, redissonField,
			v+":"+redissonField+":expire_time", time.Now().Add(lease).UnixMilli(), v+":"+redissonField+":lock_count", 1)
	}
	b.PExpire(context.Background(), group, lease)
}

// The fields in Redis of two values.
const (
	fieldOfA  = "Jon6GCcO+0QSJkhre5wXYA" // "a" by Kryo5Codec
	fieldJack = "DScHoUUqdQJ9J7Ux220rcQ" // "Jack_001" by Kryo5Codec
	rawJack   = "7pNoDdizVy2xY792MaFv+w" // "Jack_001" by StringCodec
)

// A group in Redis has the key, the channel and the fields of Redisson, by each of its codecs.
func TestGroup_Wire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field string
		opts  []core.Option
	}{
		"Kryo":   {fieldJack, nil},
		"String": {rawJack, []core.Option{core.WithGroupCodec(func(value string) []byte { return []byte(value) })}},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks(append(c.opts, core.WithPrefix("shop:"))...)
			sub := b.SubscribeTo(t, locktest.ChannelOf("shop:g"))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "Jack_001"), core.LeaseTime(time.Minute))
			hash := b.HGetAll(t.Context(), "shop:g").Val()
			ends, _ := strconv.ParseInt(hash[c.field+":"+hold.Field()+":expire_time"], 10, 64)
			if left := time.Until(time.UnixMilli(ends)); left < 50*time.Second || left > 61*time.Second {
				t.Errorf("the lease ends in %s, want a minute", left)
			}
			if len(hash) != 3 || hash[c.field] != hold.Field() || hash[c.field+":"+hold.Field()+":lock_count"] != "1" {
				t.Errorf("got %v", hash)
			}
			b.WantTTL("shop:g", 50*time.Second, 61*time.Second)
			locktest.WantSame(t, "key", hold.Key(), "{shop:g}#"+c.field)
			locktest.MustRelease(t, hold)
			sub.Want("1")
			b.WantGone("shop:g")
		})
	}
}

// All waiters for all values hear of each message, because they share a channel. Redisson sends "0".
func TestGroup_WakesEveryValue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		takeAsRedisson(b, "g", time.Hour, fieldOfA, fieldJack)
		first := locktest.GoAcquire(t.Context(), locks.GroupLock("g", "a"))
		locktest.Pass(5100 * time.Millisecond)
		second := locktest.GoAcquire(t.Context(), locks.GroupLock("g", "Jack_001")) // joins a confirmed channel
		locktest.Pass(5100 * time.Millisecond)
		start := time.Now()
		b.Free("g")
		for _, got := range []<-chan locktest.Outcome{first, second} {
			locktest.MustRelease(t, locktest.Got(t, got).Hold)
		}
		locktest.WantSoon(t, "both had their values after %s", start, 5*time.Millisecond)
	})
}

// A waiter finds a value free when the lease of its holder has expired, although other values keep the hash alive.
func TestGroup_ExpiredHolder(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, keeps := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "z"))
		takeAsRedisson(b, "g", 10*time.Second, fieldOfA)
		b.PExpire(t.Context(), "g", time.Hour)
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "a", "b"))
		locktest.WantSoon(t, "had the value after %s", start, 11*time.Second)
		if time.Since(start) < 10*time.Second {
			t.Errorf("had the value after %s, before the lease of the holder had expired", time.Since(start))
		}
		if fields := b.HKeys(t.Context(), "g").Val(); slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, redissonField) }) {
			t.Errorf("the fields of the former holder are left: %q", fields)
		}
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, keeps)
		b.WantGone("g")
	})
}

// A value is lost when another client frees it, while the holder of other values keeps them.
func TestGroup_ForceRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, other := b.Locks(), b.Locks()
		lost, left := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "a", "b"))
		kept, hold := locktest.MustAcquire(t, t.Context(), locks.GroupLock("g", "c"))
		state, err := other.GroupLock("g", "a").State(t.Context())
		if locktest.Must(t, err); len(state.Holders) != 1 {
			t.Errorf("state: got %+v", state)
		}
		locktest.WantGot(t, "forced", true)(other.GroupLock("g", "a").ForceRelease(t.Context()))
		locktest.WantGot(t, "forced again", false)(other.GroupLock("g", "a").ForceRelease(t.Context()))
		locktest.Pass(11 * time.Second)
		locktest.WantEnded(t, lost, core.ErrLost)
		locktest.WantAlive(t, kept)
		locktest.MustRelease(t, hold)
		locktest.WantErr(t, left.Release(t.Context()), core.ErrLost)
		b.WantGone("g")
	})
}

// A lock of two values gets its turn although many callers want each of the values alone.
func TestGroup_IsNotStarvedBySingleValues(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"own callers": true, "callers elsewhere": false} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			locks, busy := b.Locks(), b.Locks()
			if same {
				busy = locks
			}
			for _, value := range []string{"a", "b"} {
				locktest.TakeTurns(t, ctx, busy.GroupLock("g", value), 4, 2*time.Millisecond)
			}
			for range 5 {
				locktest.Pass(100 * time.Millisecond)
				locktest.Must(t, locks.GroupLock("g", "a", "b").Do(ctx, func(context.Context) error { return nil }, core.WaitTime(20*time.Second)))
			}
		})
	}
}

func TestGroup_Invalid(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		for name, lock := range map[string]core.Lock{
			"no values":        locks.GroupLock("g"),
			"an empty value":   locks.GroupLock("g", ""),
			"one empty value":  locks.GroupLock("g", "a", ""),
			"not UTF-8":        locks.GroupLock("g", "a", "\xff"),
			"no group":         locks.GroupLock("", "a"),
			"a group too long": locks.GroupLock(strings.Repeat("g", 10_000), "a"),
		} {
			_, _, err := lock.Acquire(t.Context())
			locktest.WantOutcome(t, name, err, core.ErrInvalid)
		}
		_, _, err := locks.GroupLock("g", "a").Acquire(t.Context(), core.WithToken())
		locktest.WantErr(t, err, core.ErrInvalid)
		_, err = locks.GroupLock("g", "a", "b").State(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		_, err = locks.Preflight(t.Context(), core.KindGroup)
		locktest.WantErr(t, err, core.ErrInvalid)
		if _, known := locks.ForAdapters().LockOf(core.KindGroup, "g", 0); known {
			t.Error("a rule can have a group lock")
		}
		_, err = core.New(b.Connect(), core.WithGroupCodec(nil))
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantSame(t, "scripts", sent.Hits(), 0)
	})
}
