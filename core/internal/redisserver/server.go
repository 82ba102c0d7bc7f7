package redisserver

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// startAttempts is the number of ports that a start tries.
const startAttempts = 10

// commandLine returns the arguments of a server on port.
type commandLine func(ctx context.Context, port int) ([]string, error)

// Server is one redis-server process. Only the goroutine of the test may call its methods: if they fail, they
// call FailNow.
type Server struct {
	t    testing.TB
	path string
	dir  string
	port int
	args commandLine
	proc *process

	mover *redis.Client // created when first needed
}

// Start starts a redis-server for the test and returns when it answers. The server is killed when
// the test ends. Its data is in memory only.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, plainArgs)
}

// plainArgs returns the command line of a server that keeps nothing on disk.
func plainArgs(_ context.Context, port int) ([]string, error) {
	return []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, nil
}

// StartDurable does the same as [Start], but the server keeps its data: it writes to disk before it answers,
// so the data survives [Server.Kill] and [Server.Restart].
func StartDurable(tb testing.TB) *Server {
	tb.Helper()
	return Binary{}.startIn(tb, tb.TempDir(), func(ctx context.Context, port int) ([]string, error) {
		args, err := plainArgs(ctx, port)
		return append(args, "--appendonly", "yes", "--appendfsync", "always"), err
	})
}

func start(tb testing.TB, args commandLine) *Server {
	tb.Helper()
	return Binary{}.start(tb, args)
}

// startAnywhere tries ports until one is still free when the server starts.
func (s *Server) startAnywhere() error {
	var last error
	for range startAttempts {
		port, err := freePort(s.t.Context())
		if err != nil {
			return err
		}
		s.port = port
		if last = s.launch(); last == nil {
			return nil
		}
	}
	return last
}

func (s *Server) launch() error {
	args, err := s.args(s.t.Context(), s.port)
	if err != nil {
		return err
	}
	s.proc, err = launch(s.t.Context(), s.path, s.dir, s.port, args)
	return err
}

// Addr returns the server's host:port; the host is an IP address. It stays the same over
// [Server.Restart].
func (s *Server) Addr() string { return address(s.port) }

// Client returns a client of the server. opts change the defaults of go-redis. The client is closed when the
// test ends, before the server is killed.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	s.t.Helper()
	o := &redis.Options{
		Addr:                     s.Addr(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClient(o)
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Stop suspends the process (SIGSTOP): connections stay open, the kernel accepts new ones, and
// nothing is answered until [Server.Continue].
func (s *Server) Stop() {
	s.t.Helper()
	if err := pause(s.proc.cmd.Process); err != nil {
		s.t.Fatalf("redisserver: stop: %v", err)
	}
}

// Continue resumes a stopped process (SIGCONT). It first serves the commands that arrived while it
// was stopped.
func (s *Server) Continue() {
	s.t.Helper()
	if err := resume(s.proc.cmd.Process); err != nil {
		s.t.Fatalf("redisserver: continue: %v", err)
	}
}

// Kill kills the process (SIGKILL), stopped or not, and waits for it. The data is lost, except
// with [StartDurable]. Killing a dead server does nothing.
func (s *Server) Kill() { s.proc.kill() }

// Restart starts the server again on the same port. The data is lost, except with [StartDurable].
// Restart first kills the server if it still runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatalf("redisserver: restart: %v", err)
	}
}

// Start does the same as [Start] with this binary.
func (b Binary) Start(tb testing.TB) *Server {
	tb.Helper()
	return b.start(tb, plainArgs)
}

// start runs a server with the command line that args returns for a port.
func (b Binary) start(tb testing.TB, args commandLine) *Server {
	tb.Helper()
	return b.startIn(tb, inMemory(tb), args)
}

// startIn does the same as start. The server writes to the given folder.
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

// until repeats step, with a client of s, until it succeeds. The test fails if that takes longer than
// a start may take.
func (s *Server) until(what string, step func(context.Context, *redis.Client) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), startTimeout)
	defer cancel()
	rdb := redis.NewClient(probeOptions(s.Addr()))
	defer func() { _ = rdb.Close() }()
	err := poll(ctx, s.proc.exited, func() error { return step(ctx, rdb) })
	if err != nil {
		s.t.Fatalf("redisserver: %s: %s: %v\n%s", what, s.Addr(), err, s.proc.logTail())
	}
}
