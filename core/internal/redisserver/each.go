package redisserver

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// Each runs body twice, in parallel subtests: "embedded" on a redistest server of
// its own, and "server" on a redis-server of its own, which is skipped (or fails) as
// [Start] says. body must not call t.Parallel: Each has done so.
func Each(t *testing.T, body func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		body(t, redistest.New(t).Client())
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		body(t, Start(t).Client())
	})
}
