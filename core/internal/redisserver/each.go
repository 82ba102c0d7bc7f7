package redisserver

import (
	"context"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Each runs body twice, in parallel subtests: "embedded" on an in-memory Redis of
// its own, and "server" on a redis-server of its own, which is skipped (or fails)
// as [Start] says. body must not call t.Parallel: Each has done so.
func Each(t *testing.T, body func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		body(t, embedded(t))
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		body(t, Start(t).Client())
	})
}

func embedded(t *testing.T) *redis.Client {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379",
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
