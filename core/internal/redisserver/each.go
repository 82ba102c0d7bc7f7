package redisserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/core/redistest"
	"github.com/redis/go-redis/v9"
)

// Each runs body in parallel subtests. The subtest "embedded" uses a new redistest server. There is one more subtest for each
// binary of [EachBinary], with a new server. body must not call t.Parallel, because Each already does.
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

// ServersEnv is the environment variable with the paths of further server binaries, separated as in PATH, for example
// /opt/redis-server-8.0:/opt/valkey-server-8.1. [Each] and [EachBinary] also run a test on each of them.
const ServersEnv = "INTERLOCK_REDIS_SERVERS"

// EachBinary runs body in parallel subtests. The subtest "server" uses redis-server on PATH. If PATH has none, that subtest
// is skipped or fails, see [RequireEnv]. There is one more subtest for each binary that [ServersEnv] names, under its file
// name. body must not call t.Parallel, because EachBinary already does.
func EachBinary(t *testing.T, body func(t *testing.T, b Binary)) {
	t.Helper()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		body(t, Binary{})
	})
	for _, path := range filepath.SplitList(os.Getenv(ServersEnv)) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			body(t, Binary{path})
		})
	}
}
