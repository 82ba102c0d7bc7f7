package redisserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Binary is a server program: redis-server, or one with the same options, such as valkey-server. The
// zero value is redis-server on PATH.
type Binary struct{ path string }

// isOld reports whether the binary is a Redis 6, which has no option for the port of the cluster bus and no
// sharded pub/sub.
func (b Binary) isOld(tb testing.TB) bool {
	tb.Helper()
	if b.path == "" {
		b.path = onPath(tb)
	}
	version, err := exec.CommandContext(tb.Context(), b.path, "--version").Output()
	if err != nil {
		tb.Fatalf("redisserver: %s --version: %v", b.path, err)
	}
	return strings.Contains(string(version), " v=6.")
}

// RequireEnv is the environment variable that turns a missing redis-server from a skip into a failure
// when it is "1".
const RequireEnv = "INTERLOCK_REQUIRE_REDIS"

// onPath returns the path of redis-server. If there is none, it skips or fails the test.
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

// inMemory creates a folder that is removed after the test, in memory if the system supports that. A node of a
// cluster answers nothing while the disk confirms its nodes.conf, which takes seconds when the disk is busy. A
// Sentinel waits for its sentinel.conf in the same way.
func inMemory(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "interlock-redis-") //nolint:usetesting // a folder of the test is on a disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
