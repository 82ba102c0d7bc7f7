package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// preparing returns a Redis with the given timeout. Each of its connections takes the time setup to prepare.
func preparing(t *testing.T, timeout, setup time.Duration) (*faultproxy.Proxy, *bench) {
	t.Helper()
	proxy, through := faultproxy.Around(t, redistest.New(t).Client(), func(o *redis.Options) {
		o.OnConnect = func(context.Context, *redis.Conn) error { // for example to fetch a token
			time.Sleep(setup) // the length of the fault
			return nil
		}
	})
	s, err := wire.New(through, wire.Config{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return proxy, &bench{Redis: s, t: t, rdb: through}
}

// open counts the open connections of a client.
type open struct{ n, most atomic.Int64 }

func (o *open) around(opts *redis.Options) {
	dial := opts.Dialer
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if n := o.n.Add(1); n > o.most.Load() {
			o.most.Store(n)
		}
		return &openConn{Conn: conn, open: o}, nil
	}
}

type openConn struct {
	net.Conn

	open *open
	once sync.Once
}

func (c *openConn) Close() error {
	c.once.Do(func() { c.open.n.Add(-1) })
	return c.Conn.Close()
}

// ask looks at a lock within the timeout and returns the fate of the call.
func ask(b *bench, key string, timeout time.Duration) wire.Fate {
	call := b.look(time.Now(), key)
	_, fate, _ := call.Wait(context.Background(), time.Now().Add(timeout))
	return fate
}

// goesOn makes one command hang. It returns the time until another command is answered and the number of
// commands without an answer before that. It gives up after a minute.
func goesOn(t *testing.T, proxy *faultproxy.Proxy, b *bench, timeout time.Duration) (after time.Duration, lost int) {
	t.Helper()
	stuck := proxy.HoldRequest(faultproxy.Once(faultproxy.All(scriptCommand, faultproxy.Containing("stuck"))))
	defer stuck.Release()
	start := time.Now()
	over := make(chan struct{})
	go func() {
		defer close(over)
		ask(b, "stuck", timeout)
	}()
	defer func() { <-over }()
	<-stuck.Hit()
	for ; time.Since(start) < time.Minute; lost++ {
		if ask(b, "other", timeout) == wire.Answered {
			return time.Since(start), lost
		}
		time.Sleep(5 * time.Millisecond) // the pause between two attempts, in virtual time
	}
	return time.Since(start), lost
}

// A silent connection does not keep callers from Redis, however long it takes to prepare another connection.
func TestLines_SilentConnectionIsReplacedSlowly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ timeout, setup time.Duration }{
		{time.Second, 0},
		{time.Second, 240 * time.Millisecond},
		{time.Second, 300 * time.Millisecond}, // a quarter of the timeout is not enough
		{time.Second, 600 * time.Millisecond},
		{time.Second, 900 * time.Millisecond},
		{3 * time.Second, 800 * time.Millisecond},
		{3 * time.Second, 2900 * time.Millisecond},
	} {
		t.Run(tt.timeout.String()+" "+tt.setup.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proxy, b := preparing(t, tt.timeout, tt.setup)
				defer b.Close()
				for ask(b, key, tt.timeout) != wire.Answered {
				}
				for range 100 {
					ask(b, key, tt.timeout)
				}
				time.Sleep(time.Second) // virtual time
				after, lost := goesOn(t, proxy, b, tt.timeout)
				if most := tt.timeout + tt.setup + 100*time.Millisecond; after > most || lost > 2 {
					t.Errorf("answered after %s, %d attempts lost", after, lost)
				}
			})
		})
	}
}

// A second connection that also hangs while it is prepared is given up for a third.
func TestLines_SecondConnectionHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy, b := preparing(t, time.Second, 0)
		defer b.Close()
		b.acquire(key, alice)
		time.AfterFunc(30*time.Millisecond, func() { proxy.BlackHole(true) })
		time.AfterFunc(200*time.Millisecond, func() { proxy.BlackHole(false) }) // the requests that it has discarded stay lost
		if after, _ := goesOn(t, proxy, b, time.Second); after < 300*time.Millisecond || after > 500*time.Millisecond {
			t.Errorf("answered after %s", after)
		}
	})
}

// However many connections hang, only a few are kept for late answers. Before another one is kept, the oldest
// is closed.
func TestLines_LeavingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const leaving, others = 8, 3 // the first, the second, one for pings
		var o open
		proxy, through := faultproxy.Around(t, redistest.New(t).Client(), o.around)
		b := newBench(t, through)
		b.acquire(key, alice)
		held := proxy.HoldRequest(faultproxy.All(scriptCommand, faultproxy.Containing("stuck")))
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				call := b.take(time.Now(), "stuck", fmt.Sprint(n))
				call.OnHang(wire.OnHang(n % 2))          // Returns or WaitsOn
				_, _, _ = call.Wait(t.Context(), soon()) // it ends, also if its connection makes room for others
			})
			time.Sleep(100 * time.Millisecond) // virtual time
			reply(b, b.look(time.Now(), key))
		}
		if n := o.most.Load(); n < leaving || n > leaving+others {
			t.Errorf("%d connections were open at the same time", n)
		}
		all.Wait()
		held.Release()
	})
}

// slowHook is a hook of the caller's client that delays each command.
type slowHook struct {
	redis.Hook

	takes time.Duration
}

func (*slowHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*slowHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *slowHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		time.Sleep(h.takes) // the length of the fault
		return next(ctx, cmd)
	}
}

// Neither the time before a command is sent nor an earlier hang counts as a round trip. So the next hang is
// noticed as early as any other.
func TestLines_HangAfterASlowStart(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	for name, tt := range map[string]struct {
		hook   time.Duration
		before func(t *testing.T, proxy *faultproxy.Proxy, b *bench)
	}{
		"nothing": {0, func(*testing.T, *faultproxy.Proxy, *bench) {}},
		"the first connection": {0, func(_ *testing.T, proxy *faultproxy.Proxy, b *bench) {
			slow := proxy.DelayRequest(faultproxy.Command("client"), 2*time.Second)
			for range 3 {
				ask(b, key, timeout)
			}
			slow.Remove()
		}},
		"a short hook": {20 * time.Millisecond, manyCalls},
		"a long hook":  {200 * time.Millisecond, manyCalls},
		"a hang": {0, func(_ *testing.T, proxy *faultproxy.Proxy, b *bench) {
			ask(b, key, timeout)
			proxy.DelayRequest(faultproxy.Once(scriptCommand), 2500*time.Millisecond)
			ask(b, key, timeout)
			time.Sleep(timeout) // virtual time
		}},
		"the first call": {0, func(_ *testing.T, proxy *faultproxy.Proxy, b *bench) {
			proxy.DelayRequest(faultproxy.Once(scriptCommand), 2500*time.Millisecond)
			ask(b, key, timeout)
			time.Sleep(timeout) // virtual time
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proxy, through := faultproxy.Around(t, redistest.New(t).Client())
				through.AddHook(&slowHook{takes: tt.hook})
				s, err := wire.New(through, wire.Config{Timeout: timeout, Owner: "test"})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				b := &bench{Redis: s, t: t, rdb: through}
				tt.before(t, proxy, b)
				after, lost := goesOn(t, proxy, b, timeout)
				if after > 150*time.Millisecond+2*tt.hook || lost > 1 {
					t.Errorf("answered after %s, %d attempts lost", after, lost)
				}
			})
		})
	}
}

func manyCalls(_ *testing.T, _ *faultproxy.Proxy, b *bench) {
	for range 50 {
		ask(b, key, 3*time.Second)
	}
}

// The caller's functions may take any time. An operation that gives up in that time does not show that Redis
// is silent.
func TestLines_RecordTimeout_WhileTheCallerPrepares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const setup = 3500 * time.Millisecond
		_, through := faultproxy.Around(t, redistest.New(t).Client(), func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) {
				time.Sleep(setup) // the length of the fault
				return "", ""
			}
		})
		b := neverSilent(t, through)
		defer time.Sleep(setup) // virtual time, in which the preparations end by themselves
		defer b.Close()
		for fate := wire.Unknown; fate != wire.Answered; {
			call := b.look(time.Now(), key)
			var err error
			if _, fate, err = call.Wait(t.Context(), time.Now().Add(time.Second)); err != nil {
				b.RecordTimeout(key, err)
			}
			time.Sleep(10 * time.Millisecond) // the pause between two attempts, in virtual time
		}
	})
}

// neverSilent returns a Redis with a timeout of a second. The test fails if the Redis is found to be silent.
func neverSilent(t *testing.T, rdb *redis.Client) *bench {
	t.Helper()
	start := time.Now()
	r, err := wire.New(rdb, wire.Config{Timeout: time.Second, Reports: wire.Reports{
		Silent: func(_ string, cause error) { t.Errorf("silent after %s: %v", time.Since(start), cause) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Redis: r, t: t, rdb: rdb}
}

// If Redis has forgotten a script, its call is sent again. The silence of Redis is counted from the second
// sending, because Redis answered the first one.
func TestHealth_SecondSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy, through := faultproxy.Around(t, redistest.New(t).Client())
		b := neverSilent(t, through)
		defer b.Close()
		reply(b, b.look(time.Now(), key)) // the connection is open
		held := proxy.HoldRequest(faultproxy.Once(scriptCommand))
		again := proxy.HoldRequest(faultproxy.Command("eval"))
		if err := b.rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			call := b.look(time.Now(), key)
			call.OnHang(wire.WaitsOn)
			_, _, _ = call.Wait(t.Context(), soon())
		})
		time.Sleep(900 * time.Millisecond) // virtual time, a little less than the timeout
		held.Release()
		<-again.Hit()
		proxy.BlackHole(true)              // also for other connections
		time.Sleep(200 * time.Millisecond) // virtual time
		b.RecordTimeout(key, errors.New("no answer to another operation"))
		proxy.BlackHole(false)
		again.Release()
		all.Wait()
	})
}

// The error of a failed connection attempt no longer explains failures once a connection exists.
func TestTrouble_EndsWithAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trouble := errors.New("no route")
		var dials atomic.Int64
		proxy, through := faultproxy.Around(t, redistest.New(t).Client(), func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) == 1 {
					return nil, trouble
				}
				return dial(ctx, network, addr)
			}
		})
		b := newBench(t, through)
		call := b.look(time.Now(), key)
		_, _, _ = call.Wait(t.Context(), soon()) // the next attempt may be in time for it
		time.Sleep(time.Second)                  // virtual time
		reply(b, b.look(time.Now(), key))
		proxy.BlackHole(true)
		call = b.look(time.Now(), key)
		if _, _, err := call.Wait(t.Context(), time.Now().Add(time.Second)); err == nil || errors.Is(err, trouble) {
			t.Errorf("the error after a connection was made: %v", err)
		}
	})
}
