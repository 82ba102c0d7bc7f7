package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// BenchmarkScript measures a script. The result shows why the server is not for production.
func BenchmarkScript(b *testing.B) {
	rdb := redistest.New(b).Client()
	script := redis.NewScript(`return redis.call('set', KEYS[1], ARGV[1], 'px', 1000)`)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := script.Run(b.Context(), rdb, []string{"k"}, "v").Err(); err != nil {
				b.Error(err)
			}
		}
	})
}
