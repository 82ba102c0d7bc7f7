package redisserver

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// startAttempts is the number of ports that startAnywhere tries.
const startAttempts = 10

// commandLine returns the arguments for a server that listens on port.
type commandLine func(ctx context.Context, port int) ([]string, error)

// Server is a redis-server, which may be killed and started again. Call its methods only on the goroutine of the test,
// because they call FailNow if they fail.
type Server struct {
	t    testing.TB
	path string
	dir  string
	port int
	args commandLine
	proc *process

	mover *redis.Client // see admin
}

// Start starts a redis-server and returns when it answers. The server keeps its data in memory only. Start kills it when the
// test ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, plainArgs)
}

// plainArgs returns the arguments for a server that writes no data to disk.
func plainArgs(_ context.Context, port int) ([]string, error) {
	return []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, nil
}

// StartDurable is like [Start], but the server writes every change to disk before it replies. The data survives
// [Server.Kill] and [Server.Restart].
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

// startAnywhere starts the server on a free port. If that fails, it tries other ports, because another process may have
// taken the port.
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

// launch starts a process on the port of s. If it fails, s.proc stays the dead process, so that Kill does nothing.
func (s *Server) launch() error {
	args, err := s.args(s.t.Context(), s.port)
	if err != nil {
		return err
	}
	proc, err := launch(s.t.Context(), s.path, s.dir, s.port, args)
	if err != nil {
		return err
	}
	s.proc = proc
	return nil
}

// Addr returns the host:port of the server. The host is an IP address. [Server.Restart] does not change it.
func (s *Server) Addr() string { return address(s.port) }

// Client returns a new client of the server. opts change the defaults of go-redis. When the test ends, the client is closed
// before the server is killed.
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

// Stop suspends the process (SIGSTOP). Connections stay open, and the kernel accepts new ones. The server answers nothing
// until [Server.Continue].
func (s *Server) Stop() {
	s.t.Helper()
	if err := PauseProcess(s.proc.cmd.Process); err != nil {
		s.t.Fatalf("redisserver: stop: %v", err)
	}
}

// Continue resumes a stopped process (SIGCONT). The server first executes the commands that arrived while it was stopped.
func (s *Server) Continue() {
	s.t.Helper()
	if err := ResumeProcess(s.proc.cmd.Process); err != nil {
		s.t.Fatalf("redisserver: continue: %v", err)
	}
}

// Kill kills the process (SIGKILL) and waits until it has exited. The process may be stopped. The data is lost, except with
// [StartDurable]. If the server is not running, Kill does nothing.
func (s *Server) Kill() { s.proc.kill() }

// Restart kills the server if it is running, and starts it again on the same port. The data is lost, except with
// [StartDurable].
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatalf("redisserver: restart: %v", err)
	}
}

// Start is like [Start], but runs this binary.
func (b Binary) Start(tb testing.TB) *Server {
	tb.Helper()
	return b.start(tb, plainArgs)
}

// start starts a server with the arguments that args returns.
func (b Binary) start(tb testing.TB, args commandLine) *Server {
	tb.Helper()
	return b.startIn(tb, memoryDir(tb), args)
}

// startIn is like start, but the server writes its files to dir.
func (b Binary) startIn(tb testing.TB, dir string, args commandLine) *Server {
	tb.Helper()
	if b.path == "" {
		b.path = findOnPath(tb)
	}
	s := &Server{t: tb, path: b.path, dir: dir, args: args}
	if err := s.startAnywhere(); err != nil {
		tb.Fatalf("redisserver: %v", err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// await repeats step until it succeeds. step gets a client of s. If that takes longer than startTimeout, or if the server
// exits, the test fails.
func (s *Server) await(what string, step func(context.Context, *redis.Client) error) {
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
