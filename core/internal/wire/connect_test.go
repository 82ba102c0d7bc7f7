package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// embeddedClient returns a client of an embedded Redis with changed options.
func embeddedClient(t *testing.T, change func(o *redis.Options)) *redis.Client {
	t.Helper()
	o := *redistest.New(t).Client().Options()
	change(&o)
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// storeOf returns a Redis with a timeout of a second. The caller closes it.
func storeOf(t *testing.T, rdb *redis.Client) *bench {
	t.Helper()
	s, err := wire.New(rdb, wire.Config{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Redis: s, t: t, rdb: rdb}
}

// acquiring makes a call and waits for its outcome for at most a second.
func acquiring(ctx context.Context, b *bench) (wire.Fate, error) {
	call := b.take(time.Now(), key, alice)
	_, fate, err := call.Wait(ctx, time.Now().Add(time.Second))
	return fate, err
}

// The caller's functions may panic. That ends a call, not the process.
func TestDialer_PanicIsAnError(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *redis.Options){
		"Dialer": func(o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) { panic("oops") }
		},
		"OnConnect": func(o *redis.Options) { o.OnConnect = func(context.Context, *redis.Conn) error { panic("oops") } },
		"credentials": func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { panic("oops") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := storeOf(t, embeddedClient(t, change))
				defer b.Close()
				fate, err := acquiring(t.Context(), b)
				if fate != wire.NotSent || err == nil || !strings.Contains(err.Error(), "panic") {
					t.Errorf("got %v, fate %d", err, fate)
				}
			})
		})
	}
}

// A Dialer that returns nothing, or that ends its goroutine, has failed to connect.
func TestDialer_NoConnection(t *testing.T) {
	t.Parallel()
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"an error and a nil pointer": func(context.Context, string, string) (net.Conn, error) {
			var none *net.TCPConn
			return none, &net.OpError{Op: "dial", Err: errors.New("refused")}
		},
		"nothing": func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		"ends": func(context.Context, string, string) (net.Conn, error) {
			runtime.Goexit()
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := storeOf(t, embeddedClient(t, func(o *redis.Options) { o.Dialer = dial }))
				for range 3 {
					if fate, err := acquiring(t.Context(), b); fate != wire.NotSent || err == nil {
						t.Errorf("got %v, fate %d", err, fate)
					}
					time.Sleep(100 * time.Millisecond) // pings have begun
				}
				b.Close()
			})
		})
	}
}

// A Dialer gets the time limit that the options of its client set.
func TestDialer_DialTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			o.DialTimeout = 300 * time.Millisecond
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}))
		defer b.Close()
		start := time.Now()
		fate, err := acquiring(t.Context(), b)
		if took := time.Since(start); fate != wire.NotSent || took != 300*time.Millisecond {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
	})
}

// The error of OnConnect explains why a connection could not be made.
func TestDialer_OnConnectFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("not today")
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { return refused }
		}))
		defer b.Close()
		if fate, err := acquiring(t.Context(), b); fate != wire.NotSent || !errors.Is(err, refused) {
			t.Errorf("got %v, fate %d", err, fate)
		}
	})
}

// OnConnect may log in with HELLO 3, which switches the connection to RESP3. Redis then encodes nil and the
// text of INFO differently.
func TestDialer_OnConnectSwitchesTheProtocol(t *testing.T) {
	t.Parallel()
	rdb := redisserver.Start(t).Client(func(o *redis.Options) {
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error { return conn.Hello(ctx, 3, "", "", "").Err() }
	})
	r, err := wire.New(rdb, wire.Config{
		Timeout: 30 * time.Second, Replication: wire.Replication{Acks: wire.AllAcks, Timeout: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	nothing := r.Call(time.Now(), wire.NewScript("return false"), key, 1, key)
	if got, fate, err := nothing.Wait(t.Context(), soon()); !errors.Is(err, redis.Nil) || fate != wire.Answered {
		t.Errorf("nil: got %v, %v, fate %d", got, err, fate)
	}
	acknowledged := r.Call(time.Now(), taking, key, 1, key, alice)
	acknowledged.Acknowledge()
	if got, fate, err := acknowledged.Wait(t.Context(), soon()); got != int64(1) || acknowledged.Shortfall() != nil {
		t.Errorf("acknowledged: got %v, %v, fate %d, %v", got, err, fate, acknowledged.Shortfall())
	}
}

// A Dialer may block and ignore its context. Calls still end with their time limits, only a few goroutines
// wait for the Dialer, and Close does not wait for ever.
func TestDialer_Blocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside, most atomic.Int64
		released := make(chan struct{})
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			o.MaxConcurrentDials = 8
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				<-released
				return nil, errors.New("released")
			}
		}))
		for start := time.Now(); time.Since(start) < time.Minute; {
			sent := time.Now()
			if _, err := acquiring(t.Context(), b); err == nil {
				t.Error("granted")
			}
			if took := time.Since(sent); took > time.Second {
				t.Errorf("took %s", took)
			}
			time.Sleep(100 * time.Millisecond) // virtual time
		}
		if got := most.Load(); got > 16 {
			t.Errorf("%d goroutines at the same time in the dialer", got)
		}
		start := time.Now()
		done := make(chan struct{})
		go func() {
			b.Close()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("Close still waits after %s", time.Since(start))
		}
		close(released)
		<-done
	})
}

// withoutDeadlines is a connection without deadlines.
type withoutDeadlines struct {
	net.Conn

	closed *atomic.Int64
}

func (c withoutDeadlines) SetDeadline(time.Time) error { return errors.New("no deadlines") }

func (c withoutDeadlines) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// A connection that cannot be used is closed.
func TestDialer_UselessConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made, closed atomic.Int64
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				made.Add(1)
				return withoutDeadlines{conn, &closed}, err
			}
		}))
		if fate, err := acquiring(t.Context(), b); fate != wire.NotSent {
			t.Errorf("got %v, fate %d", err, fate)
		}
		b.Close()
		if made.Load() == 0 || made.Load() != closed.Load() {
			t.Errorf("%d connections, %d closed", made.Load(), closed.Load())
		}
	})
}

// While a second connection is refused, the calls on the first one are answered.
func TestLines_SecondConnectionRefused(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	proxy, through := faultproxy.Around(t, server.Client())
	b := newBench(t, through)
	b.acquire(key, alice)
	if err := server.Client().ConfigSet(t.Context(), "maxclients", "2").Err(); err != nil {
		t.Fatal(err)
	}
	proxy.DelayReply(faultproxy.Once(scriptCommand), 500*time.Millisecond)
	b.acquire("slow", alice)
	b.acquire("next", alice)
}

// redialing is a connection that reconnects by itself, as a tunnel does, and returns an error if it cannot.
type redialing struct {
	net.Conn

	broken *atomic.Bool
	why    error
}

func (c redialing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.broken.Load() {
		return 0, c.why
	}
	return n, err
}

// Whatever error ends an open connection, the commands that were written to it may have been
// executed.
func TestPipeline_FateAtTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{
		"dial":       &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no way to the tunnel")},
		"closed":     redis.ErrClosed,
		"an answer":  redis.Nil,
		"the server": io.EOF,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				server := redistest.New(t).Client()
				o := *server.Options()
				dial := o.Dialer
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return redialing{conn, &broken, why}, err
				}
				rdb := redis.NewClient(&o)
				defer rdb.Close()
				b := storeOf(t, rdb)
				defer b.Close()
				b.acquire("warm", alice)
				broken.Store(true)
				fate, err := acquiring(t.Context(), b)
				if fate != wire.Unknown || !errors.Is(err, why) || !wire.Transient(err) {
					t.Errorf("got %v, fate %d", err, fate)
				}
				if got := server.HGet(t.Context(), key, alice).Val(); got != "1" {
					t.Errorf("got %q, want it executed", got)
				}
			})
		})
	}
}
