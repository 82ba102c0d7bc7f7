package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/redis/go-redis/v9"
)

const (
	operationsKey = "{" + key + "}:interlock_ops"
	leasesKey     = "{" + key + "}:timeout"
)

// permit returns the id of a permit for a test.
func permit(digit string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.PermitSemaphore, Key: key, Field: strings.Repeat(digit, 32)}
}

// ask attempts to acquire the permit of the claim and returns the refusal, if any.
func (b *bench) ask(c redisstore.Claim, demand string, lease time.Duration) *redisstore.Refusal {
	b.t.Helper()
	return reply(b, b.Acquire(time.Now(), c, redisstore.Terms{Lease: lease, Demand: demand})).Refusal
}

// wantCount requires the number of available permits.
func (b *bench) wantCount(want string) {
	b.t.Helper()
	if got := b.rdb.Get(b.t.Context(), key).Val(); got != want {
		b.t.Errorf("%s are available, want %s", got, want)
	}
}

// An operation of any kind that Redis executes again changes nothing. An undone operation is never executed
// again.
func TestStore_Settle_Once(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for range 2 {
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"a:set:5"}))
			reply(b, b.Settle(time.Now(), kinds.PlainSemaphore, key, []string{"b:give:2", "c:give:-1"}))
			b.wantCount("6")
		}
		for _, op := range []string{"d:take:6", "e:take:1"} { // the last ones: no permit remains
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
				t.Error("an undone operation was executed")
			}
		}
	})
}

// Redis remembers operations for at least 14.5 minutes. It removes old operations and extends the TTL of
// their key at most every half minute.
func TestStore_Settle_Forgets(t *testing.T) {
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
				t.Errorf("Redis remembers %q, want %q", got, tt.want)
			}
			if left := b.rdb.PTTL(t.Context(), operationsKey).Val(); left < 14*time.Minute+30*time.Second {
				t.Errorf("it remembers them for %s", left)
			}
		}
	})
}
