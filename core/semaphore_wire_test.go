package core_test

import (
	"context"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

const (
	semaphoreChannel = "redisson_sc:{pool}"
	leases           = "{pool}:timeout"
	neverExpires     = "922337203685477"
)

// permits is a semaphore beside the client: what Redisson sees and does.
type permits struct {
	*bed
}

// wantPermits wants so many permits of "pool" to be free and out.
func (b permits) wantPermits(free, out int) {
	b.t.Helper()
	got := b.Get(context.Background(), "pool").Val()
	if n := b.ZCard(context.Background(), leases).Val(); got != strconv.Itoa(free) || n != int64(out) {
		b.t.Errorf("permits: %q free and %d out, want %d and %d", got, n, free, out)
	}
}

// javaAcquire is Redisson's tryAcquire with a deadline by its own clock.
func (b permits) javaAcquire(id []byte, deadline string) (got any) {
	b.t.Helper()
	now := b.Time(context.Background()).Val().UnixMilli()
	got, err := b.Eval(context.Background(), `
local over = redis.call('zrangebyscore', KEYS[2], 0, ARGV[3], 'limit', 0, 1)
if #over > 0 then
  redis.call('zrem', KEYS[2], unpack(over))
  local v = redis.call('incrby', KEYS[1], #over)
  local _ = tonumber(v) > 0 and redis.call('publish', KEYS[3], v)
end
local v = redis.call('get', KEYS[1])
if v ~= false and tonumber(v) >= 1 then
  redis.call('decrby', KEYS[1], 1)
  redis.call('zadd', KEYS[2], ARGV[2], ARGV[1])
  return 'OK'
end
local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] ~= nil and first[2] ~= '922337203685477' then return ':' .. first[2] end
return false`, []string{"pool", leases, semaphoreChannel}, id, deadline, now).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		b.t.Fatal(err)
	}
	return got
}

// javaRelease is Redisson's release of a permit: 1, or 0 if it was not out or its time was over.
func (b permits) javaRelease(id []byte) int64 {
	b.t.Helper()
	now := b.Time(context.Background()).Val().UnixMilli()
	n, err := b.Eval(context.Background(), `
local score = redis.call('zscore', KEYS[2], ARGV[1])
if redis.call('zrem', KEYS[2], ARGV[1]) == 1 then
  local v = redis.call('incrby', KEYS[1], 1)
  redis.call('publish', KEYS[3], v)
  return tonumber(score) <= tonumber(ARGV[2]) and 0 or 1
end
return 0`, []string{"pool", leases, semaphoreChannel}, id, now).Int64()
	must(b.t, err)
	return n
}

// A permit is 16 bytes in Redisson's zset with the end of its lease by the clock of the server;
// the hold's field is the same in hex. It is given back with a message: how many are free.
func TestPermitSemaphore_Wire(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		sub := b.subscribe(t, semaphoreChannel)
		pool := b.locks().Semaphore("pool", 2)
		_, one := acquired(t, t.Context(), pool.Lock)
		sub.want("2") // it was made
		b.wantPermits(1, 1)
		before := b.Time(t.Context()).Val()
		_, two := acquired(t, t.Context(), pool.Lock, core.LeaseTime(time.Minute))
		after := b.Time(t.Context()).Val()
		b.wantPermits(0, 2)
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(two.Field()) || two.Field() == one.Field() {
			t.Errorf("fields %q and %q, want two of 32 hex digits", one.Field(), two.Field())
		}
		raw, _ := hex.DecodeString(two.Field())
		ends := int64(b.ZScore(t.Context(), leases, string(raw)).Val())
		if ends < before.Add(time.Minute).UnixMilli() || ends > after.Add(time.Minute).UnixMilli() {
			t.Errorf("the lease ends at %d, want a minute after %d", ends, before.UnixMilli())
		}
		_, _, err := pool.Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		released(t, one)
		sub.want("1")
		released(t, two)
		sub.want("2")
		b.wantPermits(2, 0)
		wantErr(t, two.Release(t.Context()), core.ErrNotHeld)
		b.wantPermits(2, 0)
	})
}

// Each side sees the permits of the other, and can give them back by their ids.
func TestPermitSemaphore_SharedWithRedisson(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		pool := b.locks().Semaphore("pool", 0)
		if set, err := pool.TrySetPermits(t.Context(), 2); !set || err != nil {
			t.Fatalf("TrySetPermits: %v, %v", set, err)
		}
		java := []byte("\x00\xff{}:\n\r\x7f0123456\x80")
		if got := b.javaAcquire(java, neverExpires); got != "OK" {
			t.Fatalf("Redisson's acquire: %v", got)
		}
		_, mine := acquired(t, t.Context(), pool.Lock)
		raw, _ := hex.DecodeString(mine.Field())
		ends := strconv.FormatFloat(b.ZScore(t.Context(), leases, string(raw)).Val(), 'f', -1, 64)
		if got := b.javaAcquire([]byte("another one of 16"), neverExpires); got != ":"+ends {
			t.Errorf("Redisson is answered %v, want :%s", got, ends)
		}
		state, err := pool.State(t.Context())
		must(t, err)
		if len(state.Holders) != 2 || state.Holders[hex.EncodeToString(java)] != 1 || state.Holders[mine.Field()] != 1 || state.TTL <= 0 {
			t.Errorf("state %+v, want both permits", state)
		}
		wantSame(t, "Redisson's release of our permit", b.javaRelease(raw), 1)
		wantErr(t, mine.Release(t.Context()), core.ErrLost)
		b.wantPermits(1, 1)
		wantGot(t, "ForceRelease", true)(pool.ForceRelease(t.Context()))
		b.wantPermits(2, 0)
		wantSame(t, "Redisson's release of what was forced away", b.javaRelease(java), 0)
		b.wantPermits(2, 0)
	})
}

// A permit that never ends is one of Redisson's without a lease time.
func TestPermitSemaphore_BehindOneThatNeverEnds(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		locks := b.locks()
		pool := locks.Semaphore("pool", 1)
		must(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1))
		id := []byte("0123456789abcdef")
		b.javaAcquire(id, neverExpires)
		_, _, err := pool.Acquire(t.Context(), core.WaitTime(0))
		var busy *core.NotAcquiredError
		if !asBusy(err, &busy) || busy.RetryAfter != 0 || busy.BlockedBy != hex.EncodeToString(id) {
			t.Errorf("got %+v, want a refusal by that permit, without an end", err)
		}
		got := acquiring(t.Context(), pool.Lock)
		waiters(t, locks, 1)
		b.javaRelease(id)
		o := <-got
		must(t, o.err)
		released(t, o.hold)
		b.wantPermits(1, 0)
	})
}

// Counts, and what changes them, with Redisson's messages. TTLs of the count are those of the
// leases, too.
func TestPermitSemaphore_Counts(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		sub := b.subscribe(t, semaphoreChannel)
		pool := b.locks().Semaphore("pool", 0)
		want := func(free, out int) {
			t.Helper()
			gotFree, err := pool.Available(t.Context())
			must(t, err)
			gotOut, err := pool.Acquired(t.Context())
			must(t, err)
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
		sub.want("3")
		b.PExpire(t.Context(), "pool", time.Hour)
		_, hold := acquired(t, t.Context(), pool.Lock)
		b.wantTTL(leases, 59*time.Minute, time.Hour)
		want(2, 1)
		must(t, pool.SetPermits(t.Context(), 5))
		sub.want("5")
		want(4, 1)
		must(t, pool.AddPermits(t.Context(), 2))
		sub.want("2")
		must(t, pool.AddPermits(t.Context(), -7))
		want(-1, 1)
		released(t, hold) // nobody is told of none
		want(0, 0)
		must(t, b.Publish(t.Context(), semaphoreChannel, "end").Err())
		sub.want("end")
		for _, n := range []int{-1, 1 << 40} {
			_, err := pool.TrySetPermits(t.Context(), n)
			wantErr(t, err, core.ErrInvalid)
			wantErr(t, pool.SetPermits(t.Context(), n), core.ErrInvalid)
		}
		_, _, err := b.locks().Semaphore("pool", -1).Acquire(t.Context())
		wantErr(t, err, core.ErrInvalid)
	})
}

// The number that is configured is made, and put right when it is another one, whatever is out.
func TestPermitSemaphore_ConfiguredNumber(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		locks := b.locks()
		var holds []*core.Hold
		for range 3 {
			_, hold := acquired(t, t.Context(), locks.Semaphore("pool", 3).Lock)
			holds = append(holds, hold)
		}
		_, _, err := locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		b.wantPermits(-1, 3)
		released(t, holds[0])
		b.wantPermits(0, 2)
		_, _, err = locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		b.Del(t.Context(), "pool")
		_, hold := acquired(t, t.Context(), locks.Semaphore("pool", 4).Lock)
		b.wantPermits(1, 3)
		for _, h := range append(holds[1:], hold) {
			released(t, h)
		}
		b.wantPermits(4, 0)
	})
}

// A context has a permit from the acquisition to its end, for the client that has acquired it.
func TestPermitSemaphore_Held(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		locks := bed.locks()
		pool := locks.Semaphore("pool", 2)
		ctx, hold := acquired(t, t.Context(), pool.Lock)
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
			"the same one of another client": {ctx, bed.locks().Semaphore("pool", 2), false},
			"no name":                        {ctx, locks.Semaphore("", 2), false},
		} {
			if got := tt.pool.Held(tt.ctx); got != tt.want {
				t.Errorf("%s: Held is %v", name, got)
			}
		}
		released(t, hold)
		if pool.Held(ctx) {
			t.Error("Held after the release")
		}
	})
}

// What is in Redis after each operation of a semaphore without leases, and its messages.
func TestSemaphore_Wire(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		sub := b.subscribe(t, semaphoreChannel)
		s := b.locks().PlainSemaphore("pool")
		want := func(n string) {
			t.Helper()
			wantSame(t, "permits", b.Get(t.Context(), "pool").Val(), n)
		}
		wantErr(t, s.Acquire(t.Context(), 1, core.WaitTime(0)), core.ErrNotAcquired)
		for _, first := range []bool{true, false} {
			if set, err := s.TrySetPermits(t.Context(), 5); set != first || err != nil {
				t.Fatalf("TrySetPermits: %v, %v", set, err)
			}
		}
		sub.want("5")
		must(t, s.Acquire(t.Context(), 3))
		want("2")
		wantErr(t, s.Acquire(t.Context(), 3, core.WaitTime(0)), core.ErrNotAcquired)
		must(t, s.Release(t.Context(), 2))
		sub.want("4")
		want("4")
		wantGot(t, "Drain", 4)(s.Drain(t.Context()))
		want("0")
		wantGot(t, "Drain", 0)(s.Drain(t.Context()))
		must(t, s.AddPermits(t.Context(), -2))
		want("-2")
		must(t, s.AddPermits(t.Context(), 5))
		sub.want("3")
		wantGot(t, "Available", 3)(s.Available(t.Context()))
		if n := b.ZCard(t.Context(), "{pool}:interlock_ops").Val(); n != 1 {
			t.Errorf("%d operations are remembered, want the last one", n)
		}
		b.wantTTL("{pool}:interlock_ops", 14*time.Minute, 15*time.Minute)
		wantErr(t, s.Acquire(t.Context(), 0), core.ErrInvalid)
		wantErr(t, s.Release(t.Context(), -1), core.ErrInvalid)
		wantErr(t, s.Acquire(t.Context(), 1, core.LeaseTime(time.Minute)), core.ErrInvalid)
	})
}

// What is in Redis after each operation of a latch, and its messages.
func TestCountDownLatch_Wire(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		sub := b.subscribe(t, "redisson_countdownlatch__channel__{a{b}c}")
		l := b.locks().CountDownLatch("a{b}c")
		must(t, l.Await(t.Context()))
		must(t, l.CountDown(t.Context()))
		b.wantGone("a{b}c")
		for _, first := range []bool{true, false} {
			if set, err := l.TrySetCount(t.Context(), 2); set != first || err != nil {
				t.Fatalf("TrySetCount: %v, %v", set, err)
			}
		}
		sub.want("1")
		wantErr(t, l.Await(t.Context(), core.WaitTime(0)), core.ErrNotAcquired)
		must(t, l.CountDown(t.Context()))
		if n, err := l.Count(t.Context()); n != 1 || err != nil || b.Get(t.Context(), "a{b}c").Val() != "1" {
			t.Errorf("Count: %d, %v", n, err)
		}
		must(t, l.CountDown(t.Context()))
		sub.want("0")
		b.wantGone("a{b}c")
		wantGot(t, "Count", 0)(l.Count(t.Context()))
		for _, there := range []bool{true, false} {
			if there {
				b.Set(t.Context(), "a{b}c", 7, 0)
			}
			wantGot(t, "Delete", there)(l.Delete(t.Context()))
		}
		sub.want("1")
		_, err := l.TrySetCount(t.Context(), 0)
		wantErr(t, err, core.ErrInvalid)
	})
}

// A key that is something else is an error, and stays as it is.
func TestCounts_AnotherType(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		b.HSet(t.Context(), "pool", stranger, 1)
		_, _, err := locks.Semaphore("pool", 1).Acquire(t.Context())
		wantErr(t, err, core.ErrUnavailable)
		wantErr(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1), core.ErrUnavailable)
		wantErr(t, locks.PlainSemaphore("pool").Acquire(t.Context(), 1), core.ErrUnavailable)
		wantErr(t, locks.PlainSemaphore("pool").Release(t.Context(), 1), core.ErrUnavailable)
		wantErr(t, locks.CountDownLatch("pool").CountDown(t.Context()), core.ErrUnavailable)
		wantErr(t, locks.CountDownLatch("pool").Await(t.Context()), core.ErrUnavailable)
		_, err = locks.PlainSemaphore("pool").TrySetPermits(t.Context(), 1)
		wantErr(t, err, core.ErrUnavailable)
		b.wantHolders("pool", map[string]string{stranger: "1"})
		b.wantGone(leases)
		if n := b.ZCard(t.Context(), "{pool}:interlock_ops").Val(); n != 0 {
			t.Errorf("%d operations are remembered", n)
		}
	})
}

func asBusy(err error, busy **core.NotAcquiredError) bool { return errors.As(err, busy) }
