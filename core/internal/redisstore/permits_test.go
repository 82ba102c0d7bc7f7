package redisstore_test

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/redis/go-redis/v9"
)

// An acquisition that Redis executes again takes no other permit, whether or not one is available. It does
// not change the lease that the holder has set since.
func TestStore_Acquire_PermitTwice(t *testing.T) {
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

// A refusal contains the permit whose lease expires first, in hex digits like the fields of holders.
func TestStore_Acquire_PermitRefused(t *testing.T) {
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

// Expired permits are returned with a message, even if there are more than one command can have as arguments.
func TestStore_Count_ManyEndedPermits(t *testing.T) {
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
