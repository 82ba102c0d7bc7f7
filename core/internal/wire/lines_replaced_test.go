package wire_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// dials counts the connections that a client makes.
type dials struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	made atomic.Int64
}

func (d *dials) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.made.Add(1)
	return d.dial(ctx, network, addr)
}

// countDials returns a client with the options of rdb whose connections are counted.
func countDials(t *testing.T, rdb *redis.Client, opts ...func(*redis.Options)) (*dials, *redis.Client) {
	t.Helper()
	o := *rdb.Options()
	d := &dials{dial: o.Dialer}
	o.Dialer = d.Dial
	for _, opt := range opts {
		opt(&o)
	}
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return d, client
}

// A connection is replaced when it reaches ConnMaxLifetime, and no call fails.
func TestLines_ConnMaxLifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, rdb := countDials(t, redistest.New(t).Client(), func(o *redis.Options) { o.ConnMaxLifetime = time.Minute })
		s, err := wire.New(rdb, wire.Config{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := &bench{Redis: s, t: t, rdb: rdb}
		for range 5 * 60 {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { reply(b, b.look(time.Now(), key)) })
			}
			all.Wait()
			time.Sleep(time.Second) // virtual time
		}
		if got := d.made.Load(); got < 5 || got > 6 {
			t.Errorf("%d connections in five minutes, want one a minute", got)
		}
	})
}

// A master that becomes a replica refuses writes. The dialer connects the next connection to the new master.
func TestLines_MasterBecomesReplica(t *testing.T) {
	t.Parallel()
	was, is := redisserver.Start(t), redisserver.Start(t)
	var now atomic.Pointer[redisserver.Server]
	now.Store(was)
	_, rdb := countDials(t, was.Client(), func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, now.Load().Addr())
		}
	})
	b := newBench(t, rdb)
	b.acquire(key, alice)
	host, port, err := net.SplitHostPort(is.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := was.Client().Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	now.Store(is)
	call := b.take(time.Now(), "other", alice)
	if _, _, err := call.Wait(t.Context(), soon()); !redis.IsReadOnlyError(err) || !wire.Transient(err) {
		t.Fatalf("got %v, want READONLY", err)
	}
	b.acquire("other", bob)
	if n := is.Client().Exists(t.Context(), "other").Val(); n != 1 {
		t.Error("it is not on the new master")
	}
}
