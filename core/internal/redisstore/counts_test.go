package redisstore_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

const (
	operationsKey = "{" + key + "}:interlock_ops"
	leasesKey     = "{" + key + "}:timeout"
)

// permit is the id of a permit.
func permit(digit string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.PermitSemaphore, Key: key, Field: strings.Repeat(digit, 32)}
}

// ask has a permit taken by the claim, and gives the refusal, if any.
func (b *bench) ask(c redisstore.Claim, demand string, lease time.Duration) *redisstore.Refusal {
	b.t.Helper()
	return reply(b, b.Acquire(time.Now(), c, redisstore.Terms{Lease: lease, Demand: demand})).Refusal
}

// wantCount wants so many to be available.
func (b *bench) wantCount(want string) {
	b.t.Helper()
	if got := b.rdb.Get(b.t.Context(), key).Val(); got != want {
		b.t.Errorf("%s are available, want %s", got, want)
	}
}

// An acquisition that is executed again, with permits left or without, takes no other one, and leaves
// the lease as its holder has set it since.
func TestPermits_ExecutedTwiceIsOnePermit(t *testing.T) {
	t.Parallel()
	for _, total := range []string{"1", "2"} {
		each(t, func(t *testing.T, b *bench) {
			one := permit("a")
			raw, err := hex.DecodeString(one.Field)
			if err != nil {
				t.Fatal(err)
			}
			for _, lease := range []time.Duration{time.Hour, 30 * time.Second} {
				b.ask(one, total, time.Minute)
				reply(b, b.Refresh(time.Now(), one, lease))
				before := b.rdb.ZScore(t.Context(), leasesKey, string(raw)).Val()
				if refusal := b.ask(one, total, time.Minute); refusal != nil {
					t.Errorf("refused: %+v", refusal)
				}
				if after := b.rdb.ZScore(t.Context(), leasesKey, string(raw)).Val(); after != before || before == 0 {
					t.Errorf("the lease ends at %.0f, before at %.0f", after, before)
				}
				b.wantCount(map[string]string{"1": "0", "2": "1"}[total])
			}
		})
	}
}

// A refusal names the permit whose lease ends first by its digits, as holders know it.
func TestPermits_RefusalNamesAPermit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.ask(permit("a"), "2", time.Hour)
		b.ask(permit("b"), "2", time.Minute)
		refusal := b.ask(permit("c"), "2", time.Hour)
		if refusal == nil || refusal.Holder != permit("b").Field || refusal.TTL <= 50*time.Second || refusal.TTL > time.Minute {
			t.Errorf("got %+v", refusal)
		}
	})
}

// More permits than one command has arguments come back when their leases are over, with a message.
func TestPermits_ManyAreOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, 0, 0)
		members := make([]redis.Z, 20000)
		for i := range members {
			members[i] = redis.Z{Score: float64(i), Member: i}
		}
		for chunk := range slices.Chunk(members, 1000) {
			b.rdb.ZAdd(t.Context(), leasesKey, chunk...)
		}
		if counts := reply(b, b.Count(time.Now(), kinds.PermitSemaphore, key)); counts != (redisstore.Counts{Left: 20000}) {
			t.Errorf("got %+v", counts)
		}
	})
}

// An operation that is executed again changes nothing, of whatever kind; one that is undone is not
// executed any more.
func TestOperations_ExecutedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for range 2 {
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"a:set:5"}))
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"b:give:2", "c:give:-1"}))
			b.wantCount("6")
		}
		for _, op := range []string{"d:take:6", "e:take:1"} { // the last ones, and none is left
			for range 2 {
				got := reply(b, b.Acquire(time.Now(), redisstore.Claim{Kind: kinds.PlainSemaphore, Key: key, Field: op}, redisstore.Terms{}))
				if (got.Refusal == nil) != (op == "d:take:6") {
					t.Errorf("%s: got %+v", op, got)
				}
				b.wantCount("0")
			}
		}
		for range 2 {
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"d:take:6"})) // undone
			b.wantCount("6")
			if got := reply(b, b.Acquire(time.Now(), redisstore.Claim{Kind: kinds.PlainSemaphore, Key: key, Field: "d:take:6"}, redisstore.Terms{})); got.Refusal == nil {
				t.Error("what was undone was executed")
			}
		}
	})
}

// Operations are remembered for a quarter of an hour, or half a minute less. They are cleared away,
// and their key is prolonged, not more often than every half minute.
func TestOperations_ClearedAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		score := func(op string, age time.Duration) redis.Z {
			return redis.Z{Member: op, Score: float64(time.Now().Add(-age).UnixMilli())}
		}
		b.rdb.ZAdd(t.Context(), operationsKey, score("old", 16*time.Minute), score("new", 14*time.Minute))
		for _, tt := range []struct {
			ttl  time.Duration
			want []string
		}{
			{14*time.Minute + 45*time.Second, []string{"a:give:1", "new", "old"}},
			{14 * time.Minute, []string{"a:give:1", "new"}},
		} {
			b.rdb.PExpire(t.Context(), operationsKey, tt.ttl)
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"a:give:1"}))
			got := b.rdb.ZRange(t.Context(), operationsKey, 0, -1).Val()
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("remembered are %q, want %q", got, tt.want)
			}
			if left := b.rdb.PTTL(t.Context(), operationsKey).Val(); left < 14*time.Minute+30*time.Second {
				t.Errorf("they are for %s", left)
			}
		}
	})
}
