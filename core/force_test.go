package core_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// Only a lock is freed by force: whatever else has its name stays, and is an error.
func TestForceRelease_OfSomethingElse(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx := context.Background()
		for name, put := range map[string]func() error{
			"string":               func() error { return b.Set(ctx, "k", "1", 0).Err() },
			"list":                 func() error { return b.RPush(ctx, "k", stranger).Err() },
			"set":                  func() error { return b.SAdd(ctx, "k", stranger).Err() },
			"sorted set":           func() error { return b.ZAdd(ctx, "k", redis.Z{Score: 1, Member: stranger}).Err() },
			"hash of something":    func() error { return b.HSet(ctx, "k", "name", "Ada", "age", "36").Err() },
			"hash with a number":   func() error { return b.HSet(ctx, "k", "visits", "36").Err() },
			"hash with a name":     func() error { return b.HSet(ctx, "k", "user:7", "Ada").Err() },
			"lock and another":     func() error { return b.HSet(ctx, "k", stranger, "1", "name", "Ada").Err() },
			"Redisson's read lock": func() error { return b.HSet(ctx, "k", "mode", "read", stranger, "1").Err() },
		} {
			must(t, put())
			if freed, err := l.ForceRelease(t.Context()); freed {
				t.Errorf("%s: freed", name)
			} else {
				wantOutcome(t, name, err, core.ErrUnavailable)
			}
			if b.Exists(ctx, "k").Val() != 1 {
				t.Errorf("%s: deleted", name)
			}
			must(t, b.Del(ctx, "k").Err())
		}
		for name, field := range map[string]string{"Redisson's": stranger, "a marker of Leave": b.locks().ID() + ":12"} {
			must(t, b.HSet(ctx, "k", field, 2).Err())
			if freed, err := l.ForceRelease(t.Context()); !freed || err != nil {
				t.Errorf("%s: got %v, %v", name, freed, err)
			}
		}
	})
}
