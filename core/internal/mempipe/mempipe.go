// Package mempipe is a network connection inside the process, for servers and proxies that tests run
// without a port. It knows nothing of Redis.
package mempipe

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// New returns the two ends of a connection in memory. Unlike a net.Pipe, the connection has an unlimited
// buffer, so a write never waits for the reader. It waits only on channels and timers, so it works in a
// synctest bubble.
func New() (a, b net.Conn) {
	ab, ba := newStream(), newStream()
	return &conn{in: ba, out: ab}, &conn{in: ab, out: ba}
}

// conn is one end. Its methods are safe for concurrent use.
type conn struct{ in, out *stream }

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // made here, never wrapped
		err = opError("read", err)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.out.write(p); err != nil {
		return 0, opError("write", err)
	}
	return len(p), nil
}

// Close ends both directions. The other end can still read the bytes written before.
func (c *conn) Close() error {
	c.in.update(func(s *stream) { s.readerGone = true })
	c.out.update(func(s *stream) { s.writerGone = true })
	return nil
}

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.update(func(s *stream) { s.deadline = t })
	return nil
}

// SetWriteDeadline does nothing, because a write does not wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return Addr{} }
func (c *conn) RemoteAddr() net.Addr { return Addr{} }

// SyscallConn is called by go-redis to find out whether the other end has closed a pooled connection. If it
// has, SyscallConn returns io.EOF. Otherwise it returns a RawConn that does nothing.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.in.ended() {
		return nil, io.EOF
	}
	return noSocket{}, nil
}

// noSocket is a socket without effect and without errors.
type noSocket struct{}

func (noSocket) Control(func(uintptr)) error    { return nil }
func (noSocket) Read(func(uintptr) bool) error  { return nil }
func (noSocket) Write(func(uintptr) bool) error { return nil }

// Addr is the address of both ends of every pipe.
type Addr struct{}

// Network returns "memory".
func (Addr) Network() string { return "memory" }

// String returns "memory".
func (Addr) String() string { return "memory" }

func opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "memory", Addr: Addr{}, Err: err}
}

type stream struct {
	mu         sync.Mutex
	buf        []byte
	deadline   time.Time
	writerGone bool
	readerGone bool
	changed    chan struct{} // closed and replaced with every change
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// update changes the stream and wakes its reader.
func (s *stream) update(change func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writerGone
}

func (s *stream) write(p []byte) (err error) {
	s.update(func(s *stream) {
		switch {
		case s.writerGone:
			err = net.ErrClosed
		case s.readerGone:
			err = syscall.EPIPE
		default:
			s.buf = append(s.buf, p...)
		}
	})
	return err
}

func (s *stream) read(p []byte) (int, error) {
	for {
		n, changed, deadline, err := s.tryRead(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		await(changed, deadline)
	}
}

func (s *stream) tryRead(p []byte) (n int, changed <-chan struct{}, deadline time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.readerGone:
		err = net.ErrClosed
	case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
		err = os.ErrDeadlineExceeded
	case len(s.buf) > 0:
		n = copy(p, s.buf)
		s.buf = s.buf[n:]
	case s.writerGone:
		err = io.EOF
	}
	return n, s.changed, s.deadline, err
}

// await returns at the next change of a stream or at its deadline.
func await(changed <-chan struct{}, deadline time.Time) {
	if deadline.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
