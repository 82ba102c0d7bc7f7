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

// dialer opens the connections to one node with the connection options of the caller's client: its
// dialer, TLS, credentials, database, name and OnConnect. It sends the greeting itself, in one round trip.
// go-redis cannot write and read on a connection at the same time. A client of go-redis for each connection would
// show up as a separate pool in measurements.
//
// The functions of the caller may block without obeying their context and may panic. So they run in separate
// goroutines. Their number is limited, and no call waits for them beyond its limit.
type dialer struct {
	opts        *redis.Options
	credentials *credentials // nil: the options contain them
	timeout     time.Duration
	owner       string        // the connections are named after it; empty: they get no such name
	unnamed     atomic.Bool   // the server accepts only connections without a name
	room        chan struct{} // one element for each goroutine
	hosts       chan *host    // idle hosts for OnConnect
	closed      atomic.Bool
}

// leastDialing is the number of attempts to connect to a node that may always run at the same time, even if
// its client allows fewer for its pool: one may hang while others proceed.
const leastDialing = 8

func newDialer(opts *redis.Options, timeout time.Duration) *dialer {
	most := max(leastDialing, opts.MaxConcurrentDials)
	return &dialer{opts: opts, timeout: timeout, room: make(chan struct{}, most), hosts: make(chan *host, most)}
}

// connect opens a connection and greets the server. It waits no longer than ctx.
func (d *dialer) connect(ctx context.Context, p *progress) (net.Conn, error) {
	return d.run(ctx, func(ctx context.Context) (net.Conn, error) { return d.introduceNamed(ctx, p) })
}

// progress is the time by which an answer should arrive while a connection is opened. The caller's
// functions, such as OnConnect, are not limited: a slow OnConnect does not make Redis silent.
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

// answerTime returns how long Redis has for one answer: a little less than the timeout, so that a
// missing answer is noticed within it.
func (d *dialer) answerTime() time.Duration { return d.timeout * 93 / 100 }

// dialed is the outcome of an attempt.
type dialed struct {
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
	made := make(chan dialed)
	go d.attempt(ctx, dial, made)
	select {
	case got := <-made:
		return got.conn, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *dialer) attempt(ctx context.Context, dial dialFunc, made chan<- dialed) {
	got := dialed{err: errDialEnded}
	defer func() {
		if r := recover(); r != nil {
			got = dialed{err: fmt.Errorf("the redis client has panicked while it connected: %v", r)}
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
	got = dialed{conn: conn}
}

// close prevents new goroutines and waits until none runs. It waits no longer than the timeout for
// goroutines that do not obey their canceled contexts.
func (d *dialer) close() {
	if d.closed.Swap(true) {
		return
	}
	defer d.dismiss()
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
		limit *= 2 // it has two round trips
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

// introduceNamed opens a connection with a name. If naming fails, it opens one without a name. If
// that works, later connections get no name.
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
		if !usable { // it may be a panic
			_ = conn.Close() //nolint:errcheck // it carries no commands
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // this ends the greeting
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

// greet sends the first commands of a connection and a PING. A connection that replaces a hanging
// one is of use only if Redis answers on it. A server that refuses the PING is alive, unless it has
// too many clients and hangs up.
func (d *dialer) greet(conn net.Conn, first [][]any, p *progress) error {
	p.within(d.answerTime())
	defer p.none()
	failed, err := d.say(conn, append(first, []any{"ping"}))
	if _, refused := errors.AsType[redis.Error](err); refused && failed == len(first) && MeaningOf(err) != MeansFull {
		return nil
	}
	return err
}

// name names a connection after its owner, following the name that the caller's client gives it. If
// the server refuses, the connection has no name.
func (d *dialer) name(conn net.Conn, owner string) error {
	name := d.opts.ClientName
	if owner != "" {
		name = cmp.Or(name, "interlock") + ":" + owner
	}
	if name == "" {
		return nil
	}
	_, err := d.say(conn, [][]any{{"client", "setname", name}})
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

// say sends commands in one write and reads their replies. It returns the first error and the index
// of its command.
func (d *dialer) say(conn net.Conn, cmds [][]any) (failed int, err error) {
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

// onConnect calls OnConnect of the client. OnConnect needs a connection of go-redis, so this one is
// lent to a host.
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
			d.dismiss()
		}
	}()
	if err := h.client.Ping(ctx).Err(); !h.ran {
		return err
	}
	return h.said
}

// dismiss closes the idle hosts.
func (d *dialer) dismiss() {
	for {
		select {
		case h := <-d.hosts:
			_ = h.client.Close() //nolint:errcheck // as above
		default:
			return
		}
	}
}

// host is a client of go-redis that only gets lent connections, one at a time. Hosts are reused, because
// measurements see each client as a separate pool.
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
		Dialer: func(context.Context, string, string) (net.Conn, error) { return lent{h.conn}, nil },
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

// lent is a connection that go-redis must not close.
type lent struct{ net.Conn }

// Close does nothing.
func (lent) Close() error { return nil }

// errLent stops the setup of a connection by go-redis.
var errLent = errors.New("the connection is lent")

// dialFunc opens a connection.
type dialFunc func(ctx context.Context) (net.Conn, error)
