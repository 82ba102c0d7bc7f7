package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// pinger asks a node whether it is there, on a connection of its own, beside those of
// the pool: it needs one round trip when the others are still being made, and is not
// behind anything. It introduces itself to nobody: that it may not ask is an answer, too.
type pinger struct {
	health *health
	conn   net.Conn
}

// pingCommand is PING as a client sends it.
const pingCommand = "*1\r\n$4\r\nPING\r\n"

// ping asks once. Each of its steps has a time limit: to connect, and to ask.
func (p *pinger) ping(ctx context.Context) (took time.Duration, err error) {
	p.health.sent(time.Now())
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	if err := p.exchange(ctx); err != nil {
		p.close()
		return 0, err
	}
	return time.Since(start), nil
}

func (p *pinger) connect(ctx context.Context) error {
	opts := p.health.client.Options()
	limit := p.health.verdict(time.Now())
	if opts.TLSConfig != nil {
		limit = limit.Add(p.health.timeout) // it has two round trips
	}
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoConnection)
	defer cancel()
	conn, err := opts.Dialer(ctx, opts.Network, opts.Addr)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.conn = conn
	return err
}

var (
	errNoConnection = errors.New("no connection")
	errNoPong       = errors.New("a ping has no answer")
)

// exchange sends the command and takes any line for the answer.
func (p *pinger) exchange(ctx context.Context) error {
	conn := p.conn
	if err := conn.SetDeadline(p.health.verdict(time.Now())); err != nil {
		return &hungUpError{err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := io.WriteString(conn, pingCommand)
	for buf := make([]byte, 512); err == nil; {
		var n int
		if n, err = conn.Read(buf); n > 0 && buf[n-1] == '\n' {
			return nil
		}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errNoPong
	}
	return &hungUpError{err}
}

// hungUpError says that a connection was made, and ended before the answer.
type hungUpError struct{ cause error }

func (e *hungUpError) Error() string { return "connection ended: " + e.cause.Error() }
func (e *hungUpError) Unwrap() error { return e.cause }

func (p *pinger) close() {
	if p.conn != nil {
		_ = p.conn.Close() //nolint:errcheck // nothing was entrusted to it
		p.conn = nil
	}
}
