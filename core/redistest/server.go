package redistest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// Server is an embedded Redis, empty at the start. Make it with [New] or [Start].
// All methods are safe for concurrent use.
type Server struct {
	mini     *miniredis.Miniredis
	proxy    *faultproxy.Proxy // all clients come through it, but for own
	known    scripts
	replicas replicas
	addr     string        // empty without a listener
	own      *redis.Client // past the proxy: acts for strangers, even while down
	failure  func(format string, args ...any)

	mu      sync.Mutex
	clients []*redis.Client
	closed  bool
	acting  sync.WaitGroup // strangers
}

// New starts an embedded Redis for a test, and closes it with its clients when the
// test ends. It has no port: only [Server.Client] reaches it. It works inside a
// testing/synctest bubble, where it must be made inside the bubble, with the t of
// the bubble.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := newServer(tb.Fatalf)
	tb.Cleanup(s.Close)
	return s
}

// Start starts an embedded Redis on a free port of 127.0.0.1, for demos. Call
// [Server.Close] at the end. The error says that there was no free port.
func Start() (*Server, error) {
	l, err := new(net.ListenConfig).Listen(unbound(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := newServer(panicf)
	s.addr = l.Addr().String()
	s.proxy.Listen(l)
	return s, nil
}

func newServer(failure func(string, ...any)) *Server {
	s := &Server{mini: miniredis.NewMiniRedis(), failure: failure}
	s.mini.ClockTTL(true)
	s.startMini()
	s.mini.Server().SetPreHook(s.replicas.answer)
	s.proxy = faultproxy.Open(s.dialMini)
	s.proxy.Watch(s.known.note)
	s.own = redis.NewClient(options(s.dialMini))
	return s
}

// startMini starts miniredis without a listener, which only its Dial does.
func (s *Server) startMini() {
	starter, err := s.mini.Dial()
	if err != nil {
		s.failure("redistest: %v", err)
	}
	_ = starter.Close()
}

// dialMini connects to miniredis itself. Its own Dial gives a net.Pipe, which has no
// buffer: a publishing script, which stops the whole miniredis, would then wait for
// the slowest subscriber to read.
func (s *Server) dialMini() (net.Conn, error) {
	near, far := mempipe.New()
	s.mini.Server().ServeConn(far)
	return near, nil
}

// dialProxy connects as a client does, without a port.
func (s *Server) dialProxy() (net.Conn, error) {
	near, far := mempipe.New()
	if err := s.proxy.Serve(far); err != nil {
		return nil, refused(err)
	}
	return near, nil
}

func refused(err error) error {
	return &net.OpError{Op: "dial", Net: "memory", Addr: mempipe.Addr{}, Err: err}
}

// quiet has the commands of a client fail without a dial while the server is down: of a dial
// that fails go-redis writes a line to its logger, which is one for the whole process.
type quiet struct{ server *Server }

// Allow is the error of the dial that there would be.
func (q quiet) Allow() error {
	if q.server.proxy.Accepts() {
		return nil
	}
	return refused(syscall.ECONNREFUSED)
}

// ReportResult does nothing.
func (quiet) ReportResult(error) {}

// Client makes a client of its own, with go-redis's defaults changed by opts. It is
// closed with the server; it may be closed before.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	o := options(s.dialProxy)
	o.Limiter = quiet{s}
	if s.addr != "" {
		o.Addr, o.Dialer, o.Limiter = s.addr, nil, nil
	}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClient(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, rdb)
	return rdb
}

const (
	unlimited      = 10_000    // more than a test has callers
	pipelineBuffer = 16 * 1024 // there may be many, and what they carry is small
)

// options are those of a client that works in a synctest bubble: an address that
// needs no DNS, and no maintenance notifications, which look addresses up. Nor does
// anything wait for a connection or for a batch before it: for such waits go-redis
// keeps timers that it passes on from one bubble to the next, which is fatal there.
// And a dial is tried once: go-redis tries again in a goroutine that nobody waits
// for, and one that the end of a test finds asleep is fatal to its bubble, too.
func options(dial func() (net.Conn, error)) *redis.Options {
	return &redis.Options{
		Addr:                     "127.0.0.1:0",
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		DialerRetries:            1,
		PoolSize:                 unlimited,
		PipelinePoolSize:         unlimited,
		PipelineReadBufferSize:   pipelineBuffer,
		PipelineWriteBufferSize:  pipelineBuffer,
		AutoPipelineOptions:      &redis.AutoPipelineOptions{MaxConcurrentBatches: unlimited, Unordered: true},
	}
}

// Addr is the host:port of a server made by [Start], and empty for [New].
func (s *Server) Addr() string { return s.addr }

// URL is the redis:// URL of a server made by [Start], and empty for [New].
func (s *Server) URL() string {
	if s.addr == "" {
		return ""
	}
	return "redis://" + s.addr
}

// Close closes the clients made by [Server.Client] and ends the server; the data is
// gone. [New] does this when the test ends. A second Close does nothing.
func (s *Server) Close() {
	clients := s.takeClients()
	s.acting.Wait() // a test may end by what a stranger does before the stranger knows that it is done
	for _, rdb := range clients {
		_ = rdb.Close()
	}
	s.proxy.Close()
	_ = s.own.Close()
	s.mini.Close()
}

func (s *Server) takeClients() []*redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	clients := s.clients
	s.clients, s.closed = nil, true
	return clients
}
