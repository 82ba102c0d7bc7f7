package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialer opens the connections to one node with the connection options of the caller's client: its dialer, TLS,
// credentials, database, name and OnConnect. It sends the first commands of a connection itself, in one round
// trip. It does not use the connections of go-redis, because go-redis cannot write and read on a connection at
// the same time.
//
// The dialer, OnConnect and the credentials provider belong to the caller. They may ignore their context,
// and they may panic. So each attempt to connect runs in its own goroutine. The number of these goroutines
// is limited, and no call waits for one beyond its limit.
type dialer struct {
	opts        *redis.Options
	credentials *credentials // nil: the options contain them
	timeout     time.Duration
	owner       string        // the name for the connections; empty: they keep the name of the caller's client
	unnamed     atomic.Bool   // the server accepts only connections without a name
	room        chan struct{} // one element for each goroutine
	hosts       chan *host    // idle hosts for OnConnect
	closed      atomic.Bool
}

// leastDialing is the number of attempts to connect to a node that may run at the same time, even if the
// caller's client allows fewer. One attempt may hang while others proceed.
const leastDialing = 8

func newDialer(opts *redis.Options, timeout time.Duration) *dialer {
	most := max(leastDialing, opts.MaxConcurrentDials)
	return &dialer{opts: opts, timeout: timeout, room: make(chan struct{}, most), hosts: make(chan *host, most)}
}

// connect opens a connection and greets the server. It waits no longer than ctx.
func (d *dialer) connect(ctx context.Context, p *progress) (net.Conn, error) {
	return d.run(ctx, func(ctx context.Context) (net.Conn, error) { return d.introduceNamed(ctx, p) })
}

// progress is the time by which Redis should answer while a connection is opened. No time is set
// while a function of the caller runs, because a slow OnConnect does not mean that Redis is silent.
type progress struct{ until atomic.Pointer[time.Time] }

// within records that an answer is awaited.
func (p *progress) within(d time.Duration) { p.until.Store(new(time.Now().Add(d))) }

// none records that no answer is awaited.
func (p *progress) none() { p.until.Store(nil) }

// overdue reports whether an awaited answer is late.
func (p *progress) overdue(now time.Time) bool {
	until := p.until.Load()
	return until != nil && now.After(*until)
}

// answerTime returns how long Redis has for one answer. It is a little less than the timeout, so
// that a missing answer is noticed before the timeout.
func (d *dialer) answerTime() time.Duration { return d.timeout * 93 / 100 }

// dialResult is the outcome of an attempt.
type dialResult struct {
	conn net.Conn
	err  error
}

// run opens a connection and waits until it is ready or ctx is done. A connection that is ready later
// is closed.
func (d *dialer) run(ctx context.Context, dial dialFunc) (net.Conn, error) {
	select {
	case d.room <- struct{}{}:
	default:
		return nil, errManyDials
	}
	made := make(chan dialResult)
	go d.attempt(ctx, dial, made)
	select {
	case got := <-made:
		return got.conn, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *dialer) attempt(ctx context.Context, dial dialFunc, made chan<- dialResult) {
	got := dialResult{err: errDialEnded}
	defer func() {
		if r := recover(); r != nil {
			got = dialResult{err: fmt.Errorf("the redis client has panicked while it connected: %v", r)}
		}
		select {
		case made <- got:
		case <-ctx.Done():
			if got.err == nil {
				_ = got.conn.Close() //nolint:errcheck // no call wants it any more
			}
		}
		<-d.room
	}()
	conn, err := dial(ctx)
	if err != nil {
		got.err = err // conn may be a typed nil pointer
		return
	}
	got = dialResult{conn: conn}
}

// close prevents new goroutines and waits until none runs, but not longer than the timeout, because
// a goroutine may ignore that its context is canceled.
func (d *dialer) close() {
	if d.closed.Swap(true) {
		return
	}
	defer d.closeHosts()
	timer := time.NewTimer(d.timeout)
	defer timer.Stop()
	for range cap(d.room) {
		select {
		case d.room <- struct{}{}:
		case <-timer.C:
			return
		}
	}
}

// dial calls the dialer of the client with the time limit that the client's pool sets.
func (d *dialer) dial(ctx context.Context, p *progress) (net.Conn, error) {
	limit := d.answerTime()
	if d.opts.TLSConfig != nil {
		limit *= 2 // TLS adds a round trip
	}
	p.within(limit)
	defer p.none()
	if d.opts.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.opts.DialTimeout)
		defer cancel()
	}
	conn, err := d.opts.Dialer(ctx, d.opts.Network, d.opts.Addr)
	if conn == nil && err == nil {
		err = errNoConnection
	}
	return conn, err
}

// introduceNamed opens a connection with a name. If naming fails, it opens a connection without a
// name. If that works, later connections get no name.
func (d *dialer) introduceNamed(ctx context.Context, p *progress) (net.Conn, error) {
	owner := d.owner
	if d.unnamed.Load() {
		owner = ""
	}
	conn, err := d.introduce(ctx, owner, p)
	if owner == "" || !errors.Is(err, errNaming) {
		return conn, err
	}
	if conn, err = d.introduce(ctx, "", p); err == nil {
		d.unnamed.Store(true)
	}
	return conn, err
}

// introduce opens a connection and authenticates on it.
func (d *dialer) introduce(ctx context.Context, owner string, p *progress) (_ net.Conn, err error) {
	conn, err := d.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	usable := false
	defer func() {
		if !usable { // also after a panic
			_ = conn.Close() //nolint:errcheck // it carries no commands
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // this ends the exchange of commands
	user, password, err := d.login(ctx)
	if err != nil {
		return nil, err
	}
	var first [][]any
	switch {
	case password == "":
	case user != "":
		first = append(first, []any{"auth", user, password})
	default:
		first = append(first, []any{"auth", password})
	}
	if d.opts.DB != 0 {
		first = append(first, []any{"select", d.opts.DB})
	}
	if err := d.greet(conn, first, p); err != nil {
		return nil, err
	}
	if d.opts.OnConnect != nil {
		if err := d.onConnect(ctx, conn); err != nil {
			return nil, err
		}
	}
	if err := d.name(conn, owner); err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("a connection needs deadlines: %w", err)
	}
	usable = ctx.Err() == nil
	return conn, context.Cause(ctx)
}

// login returns the user and the password for AUTH.
func (d *dialer) login(ctx context.Context) (user, password string, err error) {
	o := d.opts
	switch {
	case d.credentials != nil:
		return d.credentials.current()
	case o.CredentialsProviderContext != nil:
		return o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
		return user, password, nil
	default:
		return o.Username, o.Password, nil
	}
}

// greet sends the first commands of a connection and a PING, because a connection that replaces a
// hanging one is of use only if Redis answers on it. A server that refuses the PING is alive,
// except when it has too many clients: it then closes the connection.
func (d *dialer) greet(conn net.Conn, first [][]any, p *progress) error {
	p.within(d.answerTime())
	defer p.none()
	failed, err := d.roundTrip(conn, append(first, []any{"ping"}))
	if _, refused := errors.AsType[redis.Error](err); refused && failed == len(first) && MeaningOf(err) != MeansFull {
		return nil
	}
	return err
}

// name sets the name of a connection: the name that the caller's client sets, and the owner. If the
// server refuses, the connection has no name.
func (d *dialer) name(conn net.Conn, owner string) error {
	name := d.opts.ClientName
	if owner != "" {
		name = cmp.Or(name, "interlock") + ":" + owner
	}
	if name == "" {
		return nil
	}
	_, err := d.roundTrip(conn, [][]any{{"client", "setname", name}})
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case err == nil, refused:
		return nil
	case owner != "":
		return errNaming
	default:
		return err
	}
}

// roundTrip sends commands in one write and reads their replies. It returns the first error and the index
// of its command.
func (d *dialer) roundTrip(conn net.Conn, cmds [][]any) (failed int, err error) {
	if err := conn.SetDeadline(time.Now().Add(d.timeout)); err != nil {
		return -1, fmt.Errorf("a connection needs deadlines: %w", err)
	}
	var out []byte
	for _, args := range cmds {
		out = appendCommand(out, args)
	}
	if _, err := conn.Write(out); err != nil {
		return -1, err
	}
	var in bytes.Buffer
	var p parser
	failed = -1
	room := make([]byte, 1<<10)
	for answered := 0; answered < len(cmds); {
		n, ended := conn.Read(room)
		in.Write(room[:n])
		if ended != nil && n == 0 {
			return failed, cmp.Or(err, ended)
		}
		replies, length, garbled := p.replies(in.Bytes(), make([]any, 0, len(cmds)-answered))
		if garbled != nil && !errors.Is(garbled, errIncomplete) {
			return -1, garbled
		}
		in.Next(length)
		for _, reply := range replies {
			if _, refused := outcome(reply); refused != nil && err == nil {
				failed, err = answered, refused
			}
			answered++
		}
	}
	return failed, err
}

// onConnect calls OnConnect of the caller's client. OnConnect needs a connection of go-redis, so
// conn is lent to a host.
func (d *dialer) onConnect(ctx context.Context, conn net.Conn) error {
	var h *host
	select {
	case h = <-d.hosts:
	default:
		h = newHost(d.opts.Addr, d.timeout)
	}
	h.conn, h.call, h.ran = conn, d.opts.OnConnect, false
	defer func() {
		if !h.ran { // OnConnect panicked, or go-redis does not call it
			_ = h.client.Close() //nolint:errcheck // it has no connection
			return
		}
		d.hosts <- h // has room for one host of each goroutine
		if d.closed.Load() {
			d.closeHosts()
		}
	}()
	if err := h.client.Ping(ctx).Err(); !h.ran {
		return err
	}
	return h.said
}

// closeHosts closes the idle hosts.
func (d *dialer) closeHosts() {
	for {
		select {
		case h := <-d.hosts:
			_ = h.client.Close() //nolint:errcheck // as above
		default:
			return
		}
	}
}

// host is a client of go-redis that uses only lent connections, one at a time. Hosts are reused, because
// metrics count each client as a separate pool.
type host struct {
	client *redis.Client

	conn net.Conn
	call func(ctx context.Context, conn *redis.Conn) error
	said error // the result of call
	ran  bool  // call returned
}

func newHost(addr string, timeout time.Duration) *host {
	h := &host{}
	h.client = redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return lentConn{h.conn}, nil },
		OnConnect: func(ctx context.Context, conn *redis.Conn) error {
			h.said = h.call(ctx, conn)
			h.ran = true
			return errLent
		},
		ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return h
}

// lentConn is a connection that go-redis must not close.
type lentConn struct{ net.Conn }

// Close does nothing.
func (lentConn) Close() error { return nil }

// errLent stops the setup of a connection by go-redis.
var errLent = errors.New("the connection is lent")

// dialFunc opens a connection.
type dialFunc func(ctx context.Context) (net.Conn, error)
