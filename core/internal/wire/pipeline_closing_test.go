package wire_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// lazy is a connection that closes slowly, as crypto/tls does when its last record does not fit.
type lazy struct{ on atomic.Bool }

func (l *lazy) around(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &lazyConn{Conn: conn, lazy: l}, err
	}
}

type lazyConn struct {
	net.Conn

	lazy *lazy
}

func (c *lazyConn) Close() error {
	if c.lazy.on.Load() {
		time.Sleep(5 * time.Second) // the length of the fault
	}
	return c.Conn.Close()
}

// A caller that waits on an ending connection gets its error before the connection is closed. It does not
// matter which goroutine notices the end: the reader, or a caller that reads or writes.
func TestPipeline_Fail_BeforeTheClosing(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bench, j *jam){
		"the reader":           func(*bench, *jam) { time.Sleep(time.Second) }, // virtual time
		"a caller that reads":  func(b *bench, _ *jam) { lone(b) },
		"a caller that writes": func(_ *bench, j *jam) { j.fails.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l lazy
				j := &jam{}
				j.room.Store(-1)
				proxy, through := faultproxy.Around(t, redistest.New(t).Client(), l.around, j.around)
				b := storeOf(t, through)
				b.acquire(key, alice)
				before(b, j)
				proxy.HoldReply(faultproxy.Once(scriptCommand))
				l.on.Store(true)
				time.AfterFunc(time.Millisecond, proxy.Cut)
				start := time.Now()
				fate, err := acquiring(t.Context(), b)
				if took := time.Since(start); fate != wire.Unknown || took > 2*time.Millisecond {
					t.Errorf("got %v, fate %d, after %s", err, fate, took)
				}
				l.on.Store(false)
				b.Close()
			})
		})
	}
}

// lone calls alone until the caller reads its replies itself.
func lone(b *bench) {
	for range 20 {
		reply(b, b.look(time.Now(), key))
	}
}
