package redistest

import (
	"context"
	"crypto/fips140"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/mempipe"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Server is an embedded Redis. It is empty at the start. Create it with [New] or [Start]. All methods
// are safe for concurrent use.
type Server struct {
	mini     *miniredis.Miniredis
	proxy    *faultproxy.Proxy // all clients except own connect through it
	known    scripts
	replicas replicas
	addr     string        // empty without a listener
	own      *redis.Client // connects past the proxy and acts for strangers even while the server is down
	failure  func(format string, args ...any)

	mu      sync.Mutex
	clients []*redis.Client
	closed  bool
	acting  sync.WaitGroup // counts acting strangers
}

// New starts an embedded Redis for a test and closes it with its clients when the test ends. It has
// no port: only [Server.Client] reaches it. It works inside a testing/synctest bubble. Create it inside
// the bubble with the t of the bubble.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := newServer(tb.Fatalf)
	tb.Cleanup(s.Close)
	return s
}

// Start starts an embedded Redis on a free port of 127.0.0.1, for demos. Call [Server.Close] at the
// end. Start returns an error if no port is free.
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

// dialMini connects to miniredis itself. Its own Dial returns a net.Pipe, which has no buffer: a
// publishing script, which blocks the whole miniredis, would then wait for the slowest subscriber to
// read.
func (s *Server) dialMini() (net.Conn, error) {
	near, far := mempipe.New()
	fips140.WithoutEnforcement(func() { s.mini.Server().ServeConn(far) })
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

// quiet makes the commands of a client fail without a dial while the server is down. After a failed
// dial go-redis would write a line to its logger, which is shared by the whole process.
type quiet struct{ server *Server }

// Allow returns the error that a dial would return.
func (q quiet) Allow() error {
	if q.server.proxy.Accepts() {
		return nil
	}
	return refused(syscall.ECONNREFUSED)
}

// ReportResult does nothing.
func (quiet) ReportResult(error) {}

// Client returns a new client. opts change the defaults of go-redis. The client is closed with the server
// and may be closed before.
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
	pipelineBuffer = 16 * 1024 // there may be many buffers, and they carry little
)

// options returns the options of a client that works in a synctest bubble. Its address needs no DNS, and
// it has no maintenance notifications, which look addresses up. Nothing waits for a connection or for
// an earlier batch: for such waits go-redis keeps timers that it passes on from one bubble to the
// next, which is fatal there. A dial is tried once: go-redis repeats it in a goroutine that is not
// waited for, and such a goroutine asleep at the end of a test is fatal to its bubble, too.
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

// Addr returns the host:port of a server that [Start] started. It is empty for [New].
func (s *Server) Addr() string { return s.addr }

// URL returns the redis:// URL of a server that [Start] started. It is empty for [New].
func (s *Server) URL() string {
	if s.addr == "" {
		return ""
	}
	return "redis://" + s.addr
}

// Close closes the clients that [Server.Client] returned and stops the server. The data is lost. A server of
// [New] is closed when the test ends. A second Close does nothing.
func (s *Server) Close() {
	clients := s.takeClients()
	s.acting.Wait() // an action of a stranger may end the test before the action returns
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

// unbound returns the context for actions that do not belong to any caller.
func unbound() context.Context {
	return context.Background()
}

func panicf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
