package faultproxy

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
)

// Dialer opens a connection to the Redis behind a proxy.
type Dialer func() (net.Conn, error)

// Proxy passes connections on to one Redis. Create it with [New] or [Open]. All
// methods are safe for concurrent use.
type Proxy struct {
	upstream Dialer
	closing  chan struct{}
	running  sync.WaitGroup

	mu        sync.Mutex
	rules     []*Rule
	links     map[*link]struct{}
	listeners []net.Listener
	hole      bool
	refuse    bool
	closed    bool
}

// New starts a proxy for the Redis at upstreamAddr on a free local port. It is closed when the test
// ends, after the clients whose cleanup was registered later.
func New(tb testing.TB, upstreamAddr string) *Proxy {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // cleanups may still connect
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("faultproxy: %v", err)
	}
	p := Open(func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", upstreamAddr) })
	p.Listen(l)
	tb.Cleanup(p.Close)
	return p
}

// Open returns a proxy without a listener, for [Proxy.Listen] and [Proxy.Serve].
// The caller closes it.
func Open(upstream Dialer) *Proxy {
	return &Proxy{upstream: upstream, closing: make(chan struct{}), links: make(map[*link]struct{})}
}

// Addr returns the host:port of the first listener; the host is an IP address.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listeners[0].Addr().String()
}

// Listen serves the connections of l until the proxy is closed, which closes l.
func (p *Proxy) Listen(l net.Listener) {
	p.mu.Lock()
	p.listeners = append(p.listeners, l)
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			_ = p.Serve(client) // on an error the client sees a connection that is closed at once
		}
	})
}

// Serve forwards the connection of a client in goroutines of the proxy. If the connection is refused
// ([Proxy.Refuse], or the proxy is closed) or Redis cannot be reached, it closes client and returns an error.
func (p *Proxy) Serve(client net.Conn) error {
	if err := p.connect(client); err != nil {
		_ = client.Close()
		return err
	}
	return nil
}

// connect creates a link and starts it. Inside a black hole it still connects to Redis, so that a link
// always has two ends, although nothing passes.
func (p *Proxy) connect(client net.Conn) error {
	if !p.Accepts() {
		return syscall.ECONNREFUSED
	}
	upstream, err := p.upstream()
	if err != nil {
		return err
	}
	if !p.start(newLink(p, p.closing, client, upstream)) {
		_ = upstream.Close()
		return syscall.ECONNREFUSED
	}
	return nil
}

// Accepts reports whether new connections are accepted; see [Proxy.Refuse].
func (p *Proxy) Accepts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && !p.refuse
}

// start runs the link, unless the proxy was closed or refuses connections. It holds the mutex while it
// starts the goroutines, so that Close waits for all of them.
func (p *Proxy) start(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		return false
	}
	p.links[l] = struct{}{}
	p.running.Go(l.forwardCommands)
	p.running.Go(l.forwardReplies)
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) snapshot() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// Close closes the proxy. It closes all connections and listeners, discards everything that rules hold,
// and waits for all goroutines.
func (p *Proxy) Close() {
	if !p.markClosed() {
		return
	}
	close(p.closing)
	for _, l := range p.listeners {
		_ = l.Close()
	}
	for _, l := range p.snapshot() {
		l.close()
	}
	p.running.Wait()
}

func (p *Proxy) markClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.closed
	p.closed = true
	return first
}
