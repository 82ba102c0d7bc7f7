package ginlock_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// online is a shop behind a net/http server, in a bubble: connections are pipes.
type online struct {
	*shop
	client *http.Client
	dialed atomic.Int32 // connections so far
}

// serving runs a test with a server, which configure may change.
func serving(t *testing.T, configure func(*http.Server), test func(t *testing.T, s *online), opts ...any) {
	t.Helper()
	bubble(t, func(t *testing.T, s *shop) {
		o := &online{shop: s}
		l := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: s.engine}
		if configure != nil {
			configure(server)
		}
		done := make(chan error, 1)
		go func() { done <- server.Serve(l) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			o.dialed.Add(1)
			return l.dial(ctx)
		}}
		o.client = &http.Client{Transport: transport}
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			wantErr(t, "Serve", <-done, http.ErrServerClosed)
		}()
		test(t, o)
	}, opts...)
}

// post asks to pay the order; the error is that of the connection.
func (o *online) post(t testing.TB) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop"+payURL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// pipes is a listener without a port.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	once   atomic.Bool
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialed <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept gives the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	if !p.once.Swap(true) {
		close(p.closed)
	}
	return nil
}

// Addr is that of a pipe.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
