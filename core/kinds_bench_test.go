package core_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// BenchmarkKinds takes and releases a free lock of each kind with one caller and reports how long the server was
// busy with each script. Compare the kinds with the first one.
func BenchmarkKinds(b *testing.B) {
	rdb := redisserver.Start(b).Client()
	locks, err := core.New(rdb)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(context.Background()) })
	plain := locks.PlainSemaphore("plain")
	if _, err := plain.TrySetPermits(b.Context(), 8); err != nil {
		b.Fatal(err)
	}
	held := func(l core.Lock) func(context.Context) error {
		return func(ctx context.Context) error {
			_, hold, err := l.Acquire(ctx, core.WaitTime(0))
			if err != nil {
				return err
			}
			return hold.Release(ctx)
		}
	}
	for _, kind := range []struct {
		name string
		once func(context.Context) error
	}{
		{"reentrant", held(locks.Lock("reentrant"))},
		{"fenced", held(locks.FencedLock("fenced"))},
		{"fair", held(locks.FairLock("fair"))},
		{"read", held(locks.ReadLock("rw"))},
		{"write", held(locks.WriteLock("rw"))},
		{"permit", held(locks.Semaphore("permit", 8).Lock)},
		{"semaphore", func(ctx context.Context) error {
			if err := plain.Acquire(ctx, 1, core.WaitTime(0)); err != nil {
				return err
			}
			return plain.Release(ctx, 1)
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			if err := rdb.ConfigResetStat(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := kind.once(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(inScripts(b, rdb), "server-us/command")
		})
	}
}

// inScripts returns the microseconds that the server has taken for a script since its statistics were reset.
func inScripts(b *testing.B, rdb *redis.Client) float64 {
	b.Helper()
	stats := rdb.Info(b.Context(), "commandstats").Val()
	found := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(stats)
	if found == nil {
		b.Fatalf("no script was executed:\n%s", stats)
	}
	each, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return each
}
