package redisserver

import (
	"os"
	"os/exec"
	"testing"
)

// RequireEnv is the environment variable that turns a missing redis-server from a
// skip into a failure when it is "1".
const RequireEnv = "INTERLOCK_REQUIRE_REDIS"

// onPath gives the path of redis-server, or ends the test.
func onPath(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	if os.Getenv(RequireEnv) == "1" {
		tb.Fatalf("redisserver: %s=1 and no redis-server on PATH: install Redis 7 or later, or unset the variable", RequireEnv)
	}
	tb.Skipf("redisserver: no redis-server on PATH (install Redis 7 or later to run this test; %s=1 makes this a failure)", RequireEnv)
	return ""
}
