package core_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// BenchmarkLock takes and releases free locks: one caller, and many at a time.
func BenchmarkLock(b *testing.B) {
	locks, err := core.New(redisserver.Start(b).Client())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(context.Background()) })
	once := func(ctx context.Context, key string) {
		_, hold, err := locks.Lock(key).Acquire(ctx, core.WaitTime(0))
		if err != nil {
			b.Error(err)
			return
		}
		if err := hold.Release(ctx); err != nil {
			b.Error(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		ctx := b.Context()
		for b.Loop() {
			once(ctx, "alone")
		}
	})
	b.Run("128 callers", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(64)
		var callers atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			key := "k" + strconv.FormatInt(callers.Add(1), 10)
			for pb.Next() {
				once(b.Context(), key)
			}
		})
	})
}
