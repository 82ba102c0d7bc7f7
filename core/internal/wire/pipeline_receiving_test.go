package wire_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// readers records which goroutine reads.
type readers struct {
	mu sync.Mutex
	by []string // one for each read that has begun
}

func (r *readers) around(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &readConn{Conn: conn, readers: r}, err
	}
}

type readConn struct {
	net.Conn

	readers *readers
}

func (c *readConn) Read(b []byte) (int, error) {
	c.readers.mu.Lock()
	c.readers.by = append(c.readers.by, goroutine())
	c.readers.mu.Unlock()
	return c.Conn.Read(b)
}

// during returns the goroutines that begin to read while a function runs.
func (r *readers) during(something func()) (by []string) {
	r.mu.Lock()
	r.by = nil
	r.mu.Unlock()
	something()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by
}

// goroutine returns the id of the current goroutine.
func goroutine() string {
	var room [64]byte
	return string(bytes.Fields(room[:runtime.Stack(room[:], false)])[1])
}

// After several calls without other callers, a lone caller reads its reply itself, so that no other goroutine
// has to run. After a pause without calls the reader reads again.
func TestPipeline_Receiving_LoneCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r readers
		b := storeOf(t, embeddedClient(t, r.around))
		defer b.Close()
		b.acquire(key, alice)
		for range 3 {
			lone(b)
			synctest.Wait()
			by := r.during(func() { reply(b, b.look(time.Now(), key)) })
			if len(by) != 1 || by[0] != goroutine() {
				t.Errorf("alone: read by %q, the caller is %s", by, goroutine())
			}
			time.Sleep(time.Second) // virtual time
			by = r.during(func() {
				reply(b, b.look(time.Now(), key))
				synctest.Wait()
			})
			if len(by) != 1 || by[0] == goroutine() {
				t.Errorf("after a pause: read by %q, the caller is %s", by, goroutine())
			}
		}
	})
}

// Calls that are sent together take one round trip, even if a lone caller would read its reply itself.
func TestRedis_Together_OneRoundTrip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const trip = 4 * time.Millisecond
		_, rdb := faultproxy.Far(t, redistest.New(t).Client(), trip)
		b := storeOf(t, rdb)
		defer b.Close()
		b.acquire(key, alice)
		lone(b)
		var values [50]wire.Call
		calls := make([]*wire.Call, len(values))
		for i := range values {
			values[i] = b.take(time.Now(), key, alice)
			calls[i] = &values[i]
		}
		start := time.Now()
		b.Together(t.Context(), soon(), calls)
		for _, call := range calls {
			if got := reply(b, *call); got != int64(1) {
				t.Errorf("got %v", got)
			}
		}
		if took := time.Since(start); took > 3*trip {
			t.Errorf("took %s", took)
		}
	})
}
