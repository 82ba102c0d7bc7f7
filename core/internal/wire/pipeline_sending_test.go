package wire_test

import (
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// jam is a peer that does not read: writes of more than room bytes wait until the connection is
// closed.
type jam struct {
	room  atomic.Int64 // negative: unlimited
	stuck atomic.Int64 // the number of waiting writes
	fails atomic.Bool  // writes fail at once
	empty atomic.Int64 // the number of empty writes
}

func (j *jam) around(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &jammedConn{Conn: conn, jam: j, closed: make(chan struct{})}, err
	}
}

type jammedConn struct {
	net.Conn

	jam      *jam
	closed   chan struct{}
	once     sync.Once
	deadline atomic.Pointer[time.Time]
}

func (c *jammedConn) SetDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return c.Conn.SetDeadline(t)
}

func (c *jammedConn) Write(b []byte) (int, error) {
	if len(b) == 0 {
		c.jam.empty.Add(1)
	}
	if c.jam.fails.Load() {
		return 0, net.ErrClosed
	}
	if room := c.jam.room.Load(); room >= 0 && int64(len(b)) > room {
		c.jam.stuck.Add(1)
		defer c.jam.stuck.Add(-1)
		var over <-chan time.Time
		if at := c.deadline.Load(); at != nil && !at.IsZero() {
			over = time.After(time.Until(*at))
		}
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		case <-over:
			return 0, os.ErrDeadlineExceeded
		}
	}
	return c.Conn.Write(b)
}

func (c *jammedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// jammed runs a test in a bubble with a Redis whose connections can be jammed.
func jammed(t *testing.T, body func(t *testing.T, j *jam, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &jam{}
		j.room.Store(-1)
		b := storeOf(t, embeddedClient(t, j.around))
		b.acquire(key, alice)
		body(t, j, b)
		b.Close() // a second call for some tests
		if n := j.stuck.Load(); n != 0 {
			t.Errorf("%d writes are left", n)
		}
	})
}

// A caller that writes to a peer that does not read returns within the timeout, even when there are no other
// calls.
func TestPipeline_Sending_LoneWriter(t *testing.T) {
	t.Parallel()
	jammed(t, func(t *testing.T, j *jam, b *bench) {
		time.Sleep(time.Second) // the goroutine that watches calls sleeps now
		j.room.Store(0)
		start := time.Now()
		fate, err := acquiring(t.Context(), b)
		if took := time.Since(start); fate != wire.Unknown || took > 1100*time.Millisecond {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
	})
}

// A caller never writes more than a socket certainly has room for. A blocked caller would not notice the end
// of its time limit.
func TestPipeline_Sending_PeerDoesNotRead(t *testing.T) {
	t.Parallel()
	jammed(t, func(t *testing.T, j *jam, b *bench) {
		j.room.Store(16 << 10)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		took, fate, err := large(ctx, b)
		if fate != wire.Unknown || took > 200*time.Millisecond {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
	})
}

// A caller does not write more than that either when other callers have added data while the caller let them go
// first.
func TestPipeline_Sending_LargeBatch(t *testing.T) {
	t.Parallel()
	for range 30 { // the scheduler decides when each caller calls
		synctest.Test(t, func(t *testing.T) {
			j := &jam{}
			j.room.Store(-1)
			proxy, through := faultproxy.Around(t, redistest.New(t).Client(), j.around)
			b := storeOf(t, through)
			defer b.Close()
			b.acquire(key, alice)
			j.room.Store(16 << 10)
			proxy.HoldReply(scriptCommand)
			var all sync.WaitGroup
			for range 9 { // enough that callers let others go first
				all.Go(func() { _, _ = acquiring(t.Context(), b) })
			}
			synctest.Wait()
			all.Go(func() { _, _, _ = large(t.Context(), b) })
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				start := time.Now()
				fate, err := acquiring(ctx, b)
				if took := time.Since(start); fate != wire.Unknown || took > 200*time.Millisecond {
					t.Errorf("got %v, fate %d, after %s", err, fate, took)
				}
			})
			all.Wait()
		})
	}
}

// large makes a call that may not fit into the buffer of a socket.
func large(ctx context.Context, b *bench) (took time.Duration, fate wire.Fate, err error) {
	args := []any{1, key}
	for range 1000 {
		args = append(args, alice)
	}
	start := time.Now()
	call := b.Call(start, looking, key, args...)
	_, fate, err = call.Wait(ctx, start.Add(time.Second))
	return time.Since(start), fate, err
}

// An empty buffer is not written, because some connections send it as a message.
func TestPipeline_Sending_NothingToWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &jam{}
		j.room.Store(-1)
		proxy, through := faultproxy.Around(t, redistest.New(t).Client(), j.around)
		b := storeOf(t, through)
		defer b.Close()
		b.acquire(key, alice)
		goesOn(t, proxy, b, time.Second) // on a connection that was open before its first use
		if n := j.empty.Load(); n != 0 {
			t.Errorf("%d times", n)
		}
	})
}

// Close ends a writer that is stuck, and so its caller.
func TestPipeline_Sending_CloseWhileJammed(t *testing.T) {
	t.Parallel()
	jammed(t, func(t *testing.T, j *jam, b *bench) {
		j.room.Store(0)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if fate, err := acquiring(t.Context(), b); fate == wire.Answered {
					t.Errorf("got %v, fate %d", err, fate)
				}
			})
		}
		time.Sleep(10 * time.Millisecond) // virtual time
		b.Close()
		all.Wait()
	})
}
