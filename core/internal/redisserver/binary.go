package redisserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Binary is a server program with the options of redis-server, such as redis-server or valkey-server. The zero value is
// redis-server on PATH.
type Binary struct{ path string }

// isOld reports whether the binary is Redis 6. Redis 6 has no option for the port of the cluster bus and no sharded pub/sub.
func (b Binary) isOld(tb testing.TB) bool {
	tb.Helper()
	return strings.Contains(b.version(tb), " v=6.")
}

// version returns the output of --version, such as "Valkey server v=9.1.2 sha=…".
func (b Binary) version(tb testing.TB) string {
	tb.Helper()
	if b.path == "" {
		b.path = findOnPath(tb)
	}
	version, err := exec.CommandContext(tb.Context(), b.path, "--version").Output()
	if err != nil {
		tb.Fatalf("redisserver: %s --version: %v", b.path, err)
	}
	return string(version)
}

// RequireValkeyEnv is an environment variable. If it is "1", [NeedValkey] fails a test instead of skipping it.
const RequireValkeyEnv = "INTERLOCK_REQUIRE_VALKEY"

// FindValkey returns the first binary of [ServersEnv] that is Valkey 9 or later, whose Clusters can have several
// databases.
func FindValkey(tb testing.TB) (Binary, bool) {
	tb.Helper()
	const oldest = 9
	for _, path := range filepath.SplitList(os.Getenv(ServersEnv)) {
		_, version, isValkey := strings.Cut(Binary{path}.version(tb), "Valkey server v=")
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); isValkey && err == nil && n >= oldest {
			return Binary{path}, true
		}
	}
	return Binary{}, false
}

// NeedValkey returns the binary of [FindValkey]. Without such a binary it skips or fails the test.
func NeedValkey(tb testing.TB) Binary {
	tb.Helper()
	if found, ok := FindValkey(tb); ok {
		return found
	}
	if os.Getenv(RequireValkeyEnv) == "1" {
		tb.Fatalf("redisserver: %s=1 and no Valkey 9: name a valkey-server in %s, or unset the variable", RequireValkeyEnv, ServersEnv)
	}
	tb.Skipf("redisserver: no Valkey 9 (name a valkey-server in %s to run this test; %s=1 makes this a failure)", ServersEnv, RequireValkeyEnv)
	return Binary{}
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
