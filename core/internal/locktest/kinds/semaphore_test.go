package kinds_test

import (
	"context"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A client that waits beside a client that keeps all permits busy gets its turns, even if it is farther from Redis.
// Connections have a latency here. Without it, a release and the attempts after it would happen at one instant of the
// bubble, and the scheduler would decide which is first, perhaps always in the same way.
func TestPermitSemaphore_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	const near = 210 * time.Microsecond
	for name, far := range map[string]time.Duration{"nearer": near - 80*time.Microsecond, "a little farther": near + 30*time.Microsecond, "far": 24 * near} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			busy, lone := poolAway(b, near), poolAway(b, far)
			ctx, stop := context.WithCancel(context.Background())
			var callers sync.WaitGroup
			for i := range 8 {
				callers.Go(func() {
					for ctx.Err() == nil {
						_ = busy.Do(ctx, func(context.Context) error {
							time.Sleep(time.Duration(1000+100*i) * time.Microsecond) // the work, in the time of the bubble
							return nil
						})
					}
				})
			}
			var longest time.Duration
			for range 20 {
				o := locktest.Got(t, locktest.GoAcquire(t.Context(), lone, core.WaitTime(10*time.Second)))
				longest = max(longest, o.Took)
				locktest.MustRelease(t, o.Hold)
			}
			stop()
			callers.Wait()
			t.Logf("the longest of 20 waits: %s", longest)
			if longest > time.Second {
				t.Errorf("the caller waited %s, want at most 1s", longest)
			}
		})
	}
}

// poolAway returns a semaphore of two permits whose client is d away from Redis once it has subscribed. go-redis
// subscribes under a mutex, which stops the time of a bubble.
func poolAway(b *locktest.Redis, d time.Duration) core.Lock {
	b.T.Helper()
	pool := b.Locks().Semaphore("pool", 2).Lock
	_, first := locktest.MustAcquire(b.T, b.T.Context(), pool)
	_, second := locktest.MustAcquire(b.T, b.T.Context(), pool)
	way, rdb := faultproxy.Far(b.T, b.Client, 0)
	away := locktest.NewClient(b.T, rdb).Semaphore("pool", 2).Lock
	waiting := locktest.GoAcquire(b.T.Context(), away)
	locktest.Pass(time.Second)
	locktest.MustRelease(b.T, first)
	locktest.MustRelease(b.T, second)
	locktest.MustRelease(b.T, locktest.Got(b.T, waiting).Hold)
	way.Set(d)
	return away
}

// A permit is 16 bytes in Redisson's zset, with the end of its lease by the clock of the server. The field of the
// hold is the same in hex. The message of a release has the number of free permits.
func TestPermitSemaphore_Wire(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		sub := b.SubscribeTo(t, locktest.PermitChannel)
		pool := b.Locks().Semaphore("pool", 2)
		_, one := locktest.MustAcquire(t, t.Context(), pool.Lock)
		sub.Want("2") // the semaphore was made
		b.WantPermits(1, 1)
		before := b.Time(t.Context()).Val()
		_, two := locktest.MustAcquire(t, t.Context(), pool.Lock, core.LeaseTime(time.Minute))
		after := b.Time(t.Context()).Val()
		b.WantPermits(0, 2)
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(two.Field()) || two.Field() == one.Field() {
			t.Errorf("fields %q and %q, want two of 32 hex digits", one.Field(), two.Field())
		}
		raw, _ := hex.DecodeString(two.Field())
		ends := int64(b.ZScore(t.Context(), locktest.PermitLeases, string(raw)).Val())
		if ends < before.Add(time.Minute).UnixMilli() || ends > after.Add(time.Minute).UnixMilli() {
			t.Errorf("the lease ends at %d, want a minute after %d", ends, before.UnixMilli())
		}
		_, _, err := pool.Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, one)
		sub.Want("1")
		locktest.MustRelease(t, two)
		sub.Want("2")
		b.WantPermits(2, 0)
		locktest.WantErr(t, two.Release(t.Context()), core.ErrNotHeld)
		b.WantPermits(2, 0)
	})
}

// Each library sees the permits of the other, and can give them back by their ids.
func TestPermitSemaphore_SharedWithRedisson(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		pool := b.Locks().Semaphore("pool", 0)
		if set, err := pool.TrySetPermits(t.Context(), 2); !set || err != nil {
			t.Fatalf("TrySetPermits: %v, %v", set, err)
		}
		java := []byte("\x00\xff{}:\n\r\x7f0123456\x80")
		if got := b.RedissonAcquire(java, locktest.PermitForEver); got != "OK" {
			t.Fatalf("Redisson's acquire: %v, want OK", got)
		}
		_, mine := locktest.MustAcquire(t, t.Context(), pool.Lock)
		raw, _ := hex.DecodeString(mine.Field())
		ends := strconv.FormatFloat(b.ZScore(t.Context(), locktest.PermitLeases, string(raw)).Val(), 'f', -1, 64)
		if got := b.RedissonAcquire([]byte("another one of 16"), locktest.PermitForEver); got != ":"+ends {
			t.Errorf("Redisson got the answer %v, want :%s", got, ends)
		}
		state, err := pool.State(t.Context())
		locktest.Must(t, err)
		if len(state.Holders) != 2 || state.Holders[hex.EncodeToString(java)] != 1 || state.Holders[mine.Field()] != 1 || state.TTL <= 0 {
			t.Errorf("state %+v, want both permits", state)
		}
		locktest.WantSame(t, "Redisson's release of our permit", b.RedissonRelease(raw), 1)
		locktest.WantErr(t, mine.Release(t.Context()), core.ErrLost)
		b.WantPermits(1, 1)
		locktest.WantGot(t, "ForceRelease", true)(pool.ForceRelease(t.Context()))
		b.WantPermits(2, 0)
		locktest.WantSame(t, "Redisson's release of what was forced away", b.RedissonRelease(java), 0)
		b.WantPermits(2, 0)
	})
}

// A permit of Redisson without a lease time never expires.
func TestPermitSemaphore_BehindAPermitWithoutALease(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		locks := b.Locks()
		pool := locks.Semaphore("pool", 1)
		locktest.Must(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1))
		id := []byte("0123456789abcdef")
		b.RedissonAcquire(id, locktest.PermitForEver)
		_, _, err := pool.Acquire(t.Context(), core.WaitTime(0))
		if busy := locktest.NotAcquired(t, err); busy.RetryAfter != 0 || busy.BlockedBy != hex.EncodeToString(id) {
			t.Errorf("got %+v, want a refusal by that permit, without an end", busy)
		}
		got := locktest.GoAcquire(t.Context(), pool.Lock)
		locktest.AwaitWaiters(t, locks, 1)
		b.RedissonRelease(id)
		locktest.MustRelease(t, locktest.Got(t, got).Hold)
		b.WantPermits(1, 0)
	})
}

// Operations that change the count send Redisson's messages. The TTL of the count also applies to the leases.
func TestPermitSemaphore_Counts(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		sub := b.SubscribeTo(t, locktest.PermitChannel)
		pool := b.Locks().Semaphore("pool", 0)
		want := func(free, out int) {
			t.Helper()
			gotFree, err := pool.Available(t.Context())
			locktest.Must(t, err)
			gotOut, err := pool.Acquired(t.Context())
			locktest.Must(t, err)
			if gotFree != free || gotOut != out {
				t.Errorf("%d free and %d out, want %d and %d", gotFree, gotOut, free, out)
			}
		}
		want(0, 0)
		for _, first := range []bool{true, false} {
			if set, err := pool.TrySetPermits(t.Context(), 3); set != first || err != nil {
				t.Fatalf("TrySetPermits: %v, %v", set, err)
			}
		}
		sub.Want("3")
		b.PExpire(t.Context(), "pool", time.Hour)
		_, hold := locktest.MustAcquire(t, t.Context(), pool.Lock)
		b.WantTTL(locktest.PermitLeases, 59*time.Minute, time.Hour)
		want(2, 1)
		locktest.Must(t, pool.SetPermits(t.Context(), 5))
		sub.Want("5")
		want(4, 1)
		locktest.Must(t, pool.AddPermits(t.Context(), 2))
		sub.Want("2")
		locktest.Must(t, pool.AddPermits(t.Context(), -7))
		want(-1, 1)
		locktest.MustRelease(t, hold) // no message about zero permits
		want(0, 0)
		locktest.Must(t, b.Publish(t.Context(), locktest.PermitChannel, "end").Err())
		sub.Want("end")
		for _, n := range []int{-1, 1 << 40} {
			_, err := pool.TrySetPermits(t.Context(), n)
			locktest.WantErr(t, err, core.ErrInvalid)
			locktest.WantErr(t, pool.SetPermits(t.Context(), n), core.ErrInvalid)
		}
		_, _, err := b.Locks().Semaphore("pool", -1).Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
	})
}

// Nothing is left of a semaphore with a configured number a day after its last use, so a name may contain a value of a request. A
// permit that is renewed for longer stays held, and the next acquisition counts it.
func TestPermitSemaphore_Expires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := locktest.PermitsOf(locktest.Embedded(t))
		locks := b.Locks(core.WithWatchdog(time.Hour))
		pool := locks.Semaphore("pool", 2).Lock
		ctx, long := locktest.MustAcquire(t, t.Context(), pool)
		locktest.Pass(27 * time.Hour)
		if n := b.Exists(t.Context(), locktest.Pool).Val(); n != 0 {
			t.Errorf("%s is still there, for %s", locktest.Pool, b.PTTL(t.Context(), locktest.Pool).Val())
		}
		locktest.Must(t, context.Cause(ctx))
		_, other := locktest.MustAcquire(t, t.Context(), pool)
		b.WantPermits(0, 2)
		_, _, err := pool.Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, long)
		locktest.MustRelease(t, other)
		b.WantPermits(2, 0)
		locktest.Pass(27 * time.Hour)
		if keys := b.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("left: %q", keys)
		}
	})
}

// Redisson beside a semaphore whose number expires: the leases get the TTL of the number from its acquisitions, which the next
// acquisition here raises. Without the number Redisson has no permits. Its releases then count as the first permits of a
// number without a TTL.
func TestPermitSemaphore_ExpiresBesideRedisson(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		pool := b.Locks().Semaphore("pool", 3).Lock
		one, two := []byte("0123456789abcdef"), []byte("fedcba9876543210")
		take := func() *core.Hold {
			_, hold := locktest.MustAcquire(t, t.Context(), pool)
			return hold
		}
		locktest.MustRelease(t, take())
		b.PExpire(t.Context(), locktest.Pool, time.Hour)
		if got := b.RedissonAcquire(one, locktest.PermitForEver); got != "OK" {
			t.Errorf("Redisson's acquire: %v, want OK", got)
		}
		b.PExpire(t.Context(), locktest.PermitLeases, time.Hour) // as Redisson does
		hold := take()
		b.WantTTL(locktest.PermitLeases, 24*time.Hour, 26*time.Hour)
		b.WantPermits(1, 2)
		b.Del(t.Context(), locktest.Pool)
		if got, _ := b.RedissonAcquire(two, locktest.PermitForEver).(string); !strings.HasPrefix(got, ":") {
			t.Errorf("Redisson's acquire without a number: %v, want the end of a lease", got)
		}
		locktest.MustRelease(t, take())
		b.WantPermits(1, 2)
		if got := b.RedissonAcquire(two, locktest.PermitForEver); got != "OK" {
			t.Errorf("Redisson's acquire: %v, want OK", got)
		}
		b.Del(t.Context(), locktest.Pool)
		locktest.WantSame(t, "Redisson's release", b.RedissonRelease(one), 1)
		locktest.WantSame(t, "Redisson's release", b.RedissonRelease(two), 1)
		locktest.MustRelease(t, take())
		locktest.MustRelease(t, hold)
		b.WantPermits(3, 0)
		locktest.WantSame(t, "TTL of a number that Redisson made", b.PTTL(t.Context(), locktest.Pool).Val(), -1)
	})
}

// The configured number of permits is created, and corrected if it differs, however many permits are taken.
func TestPermitSemaphore_ConfiguredNumber(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		b := locktest.PermitsOf(bed)
		locks := b.Locks()
		var holds []*core.Hold
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Semaphore("pool", 3).Lock)
			holds = append(holds, hold)
		}
		_, _, err := locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		b.WantPermits(-1, 3)
		locktest.MustRelease(t, holds[0])
		b.WantPermits(0, 2)
		_, _, err = locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		b.Del(t.Context(), "pool")
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Semaphore("pool", 4).Lock)
		b.WantPermits(1, 3)
		for _, h := range append(holds[1:], hold) {
			locktest.MustRelease(t, h)
		}
		b.WantPermits(4, 0)
	})
}

// Held returns true for the context of a permit until its release, on the client that has acquired the permit.
func TestPermitSemaphore_Held(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, bed *locktest.Redis) {
		locks := bed.Locks()
		pool := locks.Semaphore("pool", 2)
		ctx, hold := locktest.MustAcquire(t, t.Context(), pool.Lock)
		for name, tt := range map[string]struct {
			ctx  context.Context
			pool core.Semaphore
			want bool
		}{
			"the context of the permit":      {ctx, pool, true},
			"another number of permits":      {ctx, locks.Semaphore("pool", 3), true},
			"a context from before":          {t.Context(), pool, false},
			"a detached one":                 {core.Detach(ctx), pool, false},
			"another semaphore":              {ctx, locks.Semaphore("other", 2), false},
			"the same one of another client": {ctx, bed.Locks().Semaphore("pool", 2), false},
			"no name":                        {ctx, locks.Semaphore("", 2), false},
		} {
			if got := tt.pool.Held(tt.ctx); got != tt.want {
				t.Errorf("%s: Held is %t", name, got)
			}
		}
		locktest.MustRelease(t, hold)
		if pool.Held(ctx) {
			t.Error("Held is true after the release")
		}
	})
}

// Each operation of a semaphore without leases leaves Redisson's keys and sends Redisson's messages.
func TestSemaphore_Wire(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, locktest.PermitChannel)
		s := b.Locks().PlainSemaphore("pool")
		want := func(n string) {
			t.Helper()
			locktest.WantSame(t, "permits", b.Get(t.Context(), "pool").Val(), n)
		}
		locktest.WantErr(t, s.Acquire(t.Context(), 1, core.WaitTime(0)), core.ErrNotAcquired)
		for _, first := range []bool{true, false} {
			if set, err := s.TrySetPermits(t.Context(), 5); set != first || err != nil {
				t.Fatalf("TrySetPermits: %v, %v", set, err)
			}
		}
		sub.Want("5")
		locktest.Must(t, s.Acquire(t.Context(), 3))
		want("2")
		locktest.WantErr(t, s.Acquire(t.Context(), 3, core.WaitTime(0)), core.ErrNotAcquired)
		locktest.Must(t, s.Release(t.Context(), 2))
		sub.Want("4")
		want("4")
		locktest.WantGot(t, "Drain", 4)(s.Drain(t.Context()))
		want("0")
		locktest.WantGot(t, "Drain", 0)(s.Drain(t.Context()))
		locktest.Must(t, s.AddPermits(t.Context(), -2))
		want("-2")
		locktest.Must(t, s.AddPermits(t.Context(), 5))
		sub.Want("3")
		locktest.WantGot(t, "Available", 3)(s.Available(t.Context()))
		if n := b.ZCard(t.Context(), "{pool}:interlock_ops").Val(); n != 1 {
			t.Errorf("%d operations are remembered, want the last one", n)
		}
		b.WantTTL("{pool}:interlock_ops", 14*time.Minute, 15*time.Minute)
		locktest.WantErr(t, s.Acquire(t.Context(), 0), core.ErrInvalid)
		locktest.WantErr(t, s.Release(t.Context(), -1), core.ErrInvalid)
		locktest.WantErr(t, s.Acquire(t.Context(), 1, core.LeaseTime(time.Minute)), core.ErrInvalid)
	})
}

// Each operation of a latch leaves Redisson's keys and sends Redisson's messages.
func TestCountDownLatch_Wire(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, "redisson_countdownlatch__channel__{a{b}c}")
		l := b.Locks().CountDownLatch("a{b}c")
		locktest.Must(t, l.Await(t.Context()))
		locktest.Must(t, l.CountDown(t.Context()))
		b.WantGone("a{b}c")
		for _, first := range []bool{true, false} {
			if set, err := l.TrySetCount(t.Context(), 2); set != first || err != nil {
				t.Fatalf("TrySetCount: %v, %v", set, err)
			}
		}
		sub.Want("1")
		locktest.WantErr(t, l.Await(t.Context(), core.WaitTime(0)), core.ErrNotAcquired)
		locktest.Must(t, l.CountDown(t.Context()))
		if n, err := l.Count(t.Context()); n != 1 || err != nil || b.Get(t.Context(), "a{b}c").Val() != "1" {
			t.Errorf("Count: %d, %v", n, err)
		}
		locktest.Must(t, l.CountDown(t.Context()))
		sub.Want("0")
		b.WantGone("a{b}c")
		locktest.WantGot(t, "Count", 0)(l.Count(t.Context()))
		for _, there := range []bool{true, false} {
			if there {
				b.Set(t.Context(), "a{b}c", 7, 0)
			}
			locktest.WantGot(t, "Delete", there)(l.Delete(t.Context()))
		}
		sub.Want("1")
		_, err := l.TrySetCount(t.Context(), 0)
		locktest.WantErr(t, err, core.ErrInvalid)
	})
}

// A key of another type is an error and stays unchanged.
func TestCounts_AnotherType(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.HSet(t.Context(), "pool", locktest.Stranger, 1)
		_, _, err := locks.Semaphore("pool", 1).Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		locktest.WantErr(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1), core.ErrUnavailable)
		locktest.WantErr(t, locks.PlainSemaphore("pool").Acquire(t.Context(), 1), core.ErrUnavailable)
		locktest.WantErr(t, locks.PlainSemaphore("pool").Release(t.Context(), 1), core.ErrUnavailable)
		locktest.WantErr(t, locks.CountDownLatch("pool").CountDown(t.Context()), core.ErrUnavailable)
		locktest.WantErr(t, locks.CountDownLatch("pool").Await(t.Context()), core.ErrUnavailable)
		_, err = locks.PlainSemaphore("pool").TrySetPermits(t.Context(), 1)
		locktest.WantErr(t, err, core.ErrUnavailable)
		b.WantHolders("pool", map[string]string{locktest.Stranger: "1"})
		b.WantGone(locktest.PermitLeases)
		if n := b.ZCard(t.Context(), "{pool}:interlock_ops").Val(); n != 0 {
			t.Errorf("%d operations are remembered, want 0", n)
		}
	})
}
