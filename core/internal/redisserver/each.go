package redisserver

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// Each runs body in parallel subtests: "embedded" on a redistest server of its own, and
// on one of its own of each binary, as [EachBinary] does. body must not call t.Parallel:
// Each has done so.
func Each(t *testing.T, body func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		body(t, redistest.New(t).Client())
	})
	EachBinary(t, func(t *testing.T, b Binary) {
		t.Helper()
		body(t, b.Start(t).Client())
	})
}
