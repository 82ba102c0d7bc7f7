package redisserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ServersEnv is the environment variable that names more server binaries by their paths,
// separated as on PATH, such as /opt/redis-server-8.0:/opt/valkey-server-8.1. [Each] and
// [EachBinary] run a test on each of them, too.
const ServersEnv = "INTERLOCK_REDIS_SERVERS"

// Binary is a server program: redis-server, or one that takes its options, such as
// valkey-server. The zero value is redis-server on PATH.
type Binary struct{ path string }

// EachBinary runs body in parallel subtests: "server" with redis-server on PATH, which is
// skipped (or fails) as [Start] says, and with each binary that [ServersEnv] names, under the
// name of its file. body must not call t.Parallel: EachBinary has done so.
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

// isOld reports whether it is a Redis 6, which cannot be given the port of its cluster bus, and
// has no sharded pub/sub.
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

// Start is [Start] with this binary.
func (b Binary) Start(tb testing.TB) *Server {
	tb.Helper()
	return b.start(tb, plainArgs)
}

// start runs a server with the command line that args makes for a port.
func (b Binary) start(tb testing.TB, args commandLine) *Server {
	tb.Helper()
	return b.startIn(tb, inMemory(tb), args)
}

// startIn is start with the folder that the server writes to.
func (b Binary) startIn(tb testing.TB, dir string, args commandLine) *Server {
	tb.Helper()
	if b.path == "" {
		b.path = onPath(tb)
	}
	s := &Server{t: tb, path: b.path, dir: dir, args: args}
	if err := s.startAnywhere(); err != nil {
		tb.Fatalf("redisserver: %v", err)
	}
	tb.Cleanup(s.Kill)
	return s
}
