package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// dialing runs what the caller has given his client to make connections with: a Dialer,
// OnConnect, credentials. Each of them may block without listening to its context, and may
// panic. So they run in goroutines of their own, of which there are only so many at the same
// time, and nobody waits there for longer than he wants.
type dialing struct {
	room chan struct{} // one element for each that runs
	once sync.Once
}

func newDialing(most int) *dialing { return &dialing{room: make(chan struct{}, most)} }

// dialFunc makes a connection.
type dialFunc func(ctx context.Context) (net.Conn, error)

// dialed is what becomes of it.
type dialed struct {
	conn net.Conn
	err  error
}

// errManyDials refuses one more.
var errManyDials = errors.New("too many attempts to connect to redis have not ended")

// errDialEnded is the error where the goroutine was ended from within.
var errDialEnded = errors.New("the dialer of the redis client has ended its goroutine")

// do makes a connection, and waits until there is one or ctx ends. One that is made
// afterwards is closed.
func (d *dialing) do(ctx context.Context, dial dialFunc) (net.Conn, error) {
	select {
	case d.room <- struct{}{}:
	default:
		return nil, errManyDials
	}
	made := make(chan dialed)
	go d.run(ctx, dial, made)
	select {
	case got := <-made:
		return got.conn, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *dialing) run(ctx context.Context, dial dialFunc, made chan<- dialed) {
	got := dialed{err: errDialEnded}
	defer func() {
		if r := recover(); r != nil {
			got = dialed{err: fmt.Errorf("the redis client has panicked while it connected: %v", r)}
		}
		select {
		case made <- got:
		case <-ctx.Done():
			if got.err == nil {
				_ = got.conn.Close() //nolint:errcheck // nobody wants it any more
			}
		}
		<-d.room
	}()
	conn, err := dial(ctx)
	switch {
	case err != nil:
		got.err = err // conn may be a nil pointer of some type
	case conn == nil:
		got.err = errNoConnection
	default:
		got = dialed{conn: conn}
	}
}

// close waits until none runs, and lets none begin. Those who do not listen to their
// contexts, which have ended, are waited for until the limit.
func (d *dialing) close(limit time.Duration) {
	d.once.Do(func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for range cap(d.room) {
			select {
			case d.room <- struct{}{}:
			case <-timer.C:
				return
			}
		}
	})
}
