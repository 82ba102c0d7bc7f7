package redisstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// address is how a node is reached.
type address struct {
	network, addr string
	dial          func(ctx context.Context, network, addr string) (net.Conn, error)
	tls           bool
	again         func(ctx context.Context) error // asks by the pool of a client; may be nil
	dialing       *dialing
}

// addressOf is that of a client's node.
func addressOf(client *redis.Client, d *dialing) address {
	o := client.Options()
	return address{
		network: o.Network, addr: o.Addr, dial: o.Dialer, tls: o.TLSConfig != nil,
		again:   func(ctx context.Context) error { return client.Ping(ctx).Err() },
		dialing: d,
	}
}

// entryOf is one of those that a ClusterClient was given.
func entryOf(o *redis.ClusterOptions, addr string, d *dialing) address {
	a := address{network: "tcp", addr: addr, dial: o.Dialer, tls: o.TLSConfig != nil, dialing: d}
	if a.dial == nil {
		a.dial = redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
	}
	return a
}

// pinger asks a node whether it is there, on a connection of its own, beside those of
// the pool: it needs one round trip when the others are still being made, and is not
// behind anything. It introduces itself to nobody: that it may not ask is an answer, too.
type pinger struct {
	health *health
	conn   net.Conn
}

// pingCommand is PING as a client sends it.
const pingCommand = "*1\r\n$4\r\nPING\r\n"

// ping asks once. Each of its steps has a time limit: to connect, and to ask. To end the
// connection may be the way of a proxy with those who have not introduced themselves; those
// of the pool do.
func (p *pinger) ping(ctx context.Context) error {
	p.health.sent(time.Now())
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return err
		}
	}
	err := p.exchange(ctx)
	if err != nil {
		p.close()
	}
	var hungUp *hungUpError
	if errors.As(err, &hungUp) && p.health.address.again != nil {
		err = p.health.address.again(ctx)
	}
	return err
}

func (p *pinger) connect(ctx context.Context) error {
	at := p.health.address
	limit := p.health.verdict(time.Now())
	if at.tls {
		limit = limit.Add(p.health.timeout) // it has two round trips
	}
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoConnection)
	defer cancel()
	conn, err := at.dialing.do(ctx, func(ctx context.Context) (net.Conn, error) { return at.dial(ctx, at.network, at.addr) })
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errManyDials):
		return errNoConnection
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
	limit := p.health.verdict(time.Now())
	if err := conn.SetDeadline(limit); err != nil {
		return &hungUpError{err}
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // nothing was entrusted to it
	_, err := io.WriteString(conn, pingCommand)
	if err == nil {
		err = awaitLine(conn, limit)
	}
	switch {
	case err == nil:
		return nil
	case timedOut(err), ctx.Err() != nil:
		return errNoPong
	default:
		return &hungUpError{err}
	}
}

// awaitLine waits for a line until the deadline of the connection, which is limit, and then
// looks once more: if this process was stopped meanwhile, the line came long ago.
func awaitLine(conn net.Conn, limit time.Time) error {
	in := bufio.NewReader(conn)
	_, err := in.ReadBytes('\n')
	if err == nil || !timedOut(err) {
		return err
	}
	more := settling
	if wokeAfter(limit) {
		more = waking
	}
	if err := conn.SetReadDeadline(time.Now().Add(more)); err != nil {
		return err
	}
	_, err = in.ReadBytes('\n')
	return err
}

// timedOut reports whether an error is that of a deadline.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
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
