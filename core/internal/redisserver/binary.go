package redisserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Binary is a server program with the options of redis-server, such as redis-server or valkey-server. The zero value is
// redis-server on PATH.
type Binary struct{ path string }

// isOld reports whether the binary is Redis 6. Redis 6 has no option for the port of the cluster bus and no sharded pub/sub.
func (b Binary) isOld(tb testing.TB) bool {
	tb.Helper()
	if b.path == "" {
		b.path = findOnPath(tb)
	}
	version, err := exec.CommandContext(tb.Context(), b.path, "--version").Output()
	if err != nil {
		tb.Fatalf("redisserver: %s --version: %v", b.path, err)
	}
	return strings.Contains(string(version), " v=6.")
}

// RequireEnv is an environment variable. If it is "1", a test without a redis-server on PATH fails. Otherwise the test is
// skipped.
const RequireEnv = "INTERLOCK_REQUIRE_REDIS"

// findOnPath returns the path of redis-server on PATH. If there is none, it skips or fails the test.
func findOnPath(tb testing.TB) string {
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

// memoryDir returns a new folder, in memory if the system supports that. It is removed after the test. A cluster node answers
// nothing while the disk confirms its nodes.conf, which takes seconds if the disk is busy. A Redis Sentinel waits for its
// sentinel.conf in the same way.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "interlock-redis-") //nolint:usetesting // a folder of the test is on a disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
