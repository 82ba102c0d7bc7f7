package outages_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// Operations wait for a Redis that answers slowly. Without a wait time they end within eight backend timeouts in all.
// In this test every answer takes a part of the backend timeout, after the answers to other commands on the same
// connection. Redis has also forgotten the script. So a command is sent several times, and takes long each time.
func TestOutage_SlowAnswersHaveOneBound(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	background := context.Background()
	for name, operation := range map[string]func(ctx context.Context, hold *core.Hold, locks *core.Client) error{
		"acquire": func(_ context.Context, _ *core.Hold, locks *core.Client) error {
			_, _, err := locks.Lock("other").Acquire(background, core.WaitTime(0))
			return err
		},
		"re-entry": func(ctx context.Context, _ *core.Hold, locks *core.Client) error {
			_, _, err := locks.Lock("held").Acquire(ctx, core.WaitTime(0))
			return err
		},
		"release": func(_ context.Context, hold *core.Hold, _ *core.Client) error { return hold.Release(background) },
		"refresh": func(_ context.Context, hold *core.Hold, _ *core.Client) error {
			return hold.Refresh(background, 2*time.Hour)
		},
		"leave": func(_ context.Context, hold *core.Hold, _ *core.Client) error {
			return hold.Leave(background, time.Minute)
		},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			for delay := timeout / 4; delay < timeout; delay += timeout / time.Duration(thorough.Or(20, 5)) {
				locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
					locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
					ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"), core.LeaseTime(time.Hour))
					locktest.Must(t, b.ScriptFlush(t.Context()).Err())
					slow := proxy.DelayReply(faultproxy.Command("evalsha", "eval"), delay)
					defer slow.Remove()
					for i := range 12 {
						locktest.GoAcquire(t.Context(), locks.Lock(fmt.Sprint("k", i)), core.WaitTime(10*timeout))
						locktest.Pass(timeout / 50)
					}
					start := time.Now()
					err := operation(ctx, hold, locks)
					if took := time.Since(start); took > 8*timeout {
						t.Errorf("every answer takes %s: the operation took %s: %v", delay, took, err)
					}
				})
			}
		})
	}
}

// A command whose connection breaks is sent again with another backend timeout, but not a third time. A Redis that
// answers pings and no scripts costs less than two backend timeouts.
func TestOutage_ResendHasOneMoreTimeout(t *testing.T) {
	t.Parallel()
	const timeout, broken = time.Second, 900 * time.Millisecond
	for name, operation := range map[string]func(context.Context, *core.Hold, core.Lock) error{
		"acquire": func(ctx context.Context, _ *core.Hold, other core.Lock) error {
			_, _, err := other.Acquire(ctx, core.WaitTime(0))
			return err
		},
		"waiting acquire": func(ctx context.Context, _ *core.Hold, other core.Lock) error {
			_, _, err := other.Acquire(ctx, core.WaitTime(time.Minute))
			return err
		},
		"release": func(ctx context.Context, hold *core.Hold, _ core.Lock) error { return hold.Release(ctx) },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"), core.LeaseTime(time.Hour))
			rule := proxy.HoldReply(faultproxy.Command("evalsha"))
			cut := time.AfterFunc(broken, proxy.Cut)
			defer cut.Stop()
			start := time.Now()
			locktest.WantErr(t, operation(t.Context(), hold, locks.Lock("other")), core.ErrUnavailable)
			if took := time.Since(start); took < broken || took > 2*timeout {
				t.Errorf("the caller took %s", took)
			}
			rule.Remove()
		})
	}
}

// A Redis that answers slowly is not down. With any latency below the backend timeout every free lock is acquired. This
// includes the first lock, for which the client opens connections and loads the script.
func TestSlow_EveryFreeLockIsAcquired(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} {
		for name, acquire := range map[string]func(t *testing.T, locks *core.Client){
			"in sequence": func(t *testing.T, locks *core.Client) {
				for i := range 11 {
					acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i))
				}
			},
			"at once": func(t *testing.T, locks *core.Client) {
				locktest.Concurrently(33, func(i int) { acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i)) })
			},
			"one by one": func(t *testing.T, locks *core.Client) {
				locktest.Concurrently(33, func(i int) {
					locktest.Pass(time.Duration(i) * latency / 10)
					acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i))
				})
			},
			"re-entered": func(t *testing.T, locks *core.Client) {
				locktest.Concurrently(11, func(i int) {
					name := fmt.Sprint("k", i)
					ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock(name), core.WaitTime(10*time.Second))
					acquireAndRelease(t, ctx, locks, name)
					locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
					locktest.MustRelease(t, hold)
				})
			},
		} {
			locktest.ParallelBubble(t, fmt.Sprint(latency, "/", name), func(t *testing.T, b *locktest.Redis) {
				_, rdb := faultproxy.Far(t, b.Client, latency)
				acquire(t, locktest.NewClient(t, rdb))
			})
		}
	}
}

// acquireAndRelease acquires and releases a lock.
func acquireAndRelease(t *testing.T, ctx context.Context, locks *core.Client, name string) {
	t.Helper()
	start := time.Now()
	_, hold, err := locks.Lock(name).Acquire(ctx, core.WaitTime(time.Minute))
	if err != nil {
		t.Errorf("%s: after %s: %v", name, time.Since(start), err)
		return
	}
	locktest.MustRelease(t, hold)
}

// farTimeout is for latencies of real time.
var farTimeout = core.WithBackendTimeout(3 * time.Second)

// farLatency returns three fifths of farTimeout in a run that measures times, and a tenth otherwise, because a busy
// machine adds to it.
func farLatency() time.Duration {
	if locktest.IsQuiet() {
		return 1800 * time.Millisecond
	}
	return 300 * time.Millisecond
}

// Every free lock is acquired on a slow real server, too.
func TestSlow_EveryFreeLockIsAcquiredOnAServer(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	_, rdb := faultproxy.Far(t, server.Client(), farLatency())
	locks := locktest.NewClient(t, rdb, farTimeout)
	locktest.Concurrently(33, func(i int) { acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i)) })
}

// Every free lock is acquired in a slow Cluster, which the client first asks for its slots.
func TestSlow_EveryFreeLockIsAcquiredInACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	way := faultproxy.NewLatency(t, farLatency())
	locks := locktest.NewClient(t, cluster.Client(func(o *redis.ClusterOptions) { o.Dialer = way.Dialer(new(net.Dialer).DialContext) }), farTimeout)
	locktest.Concurrently(33, func(i int) { acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i)) })
}

// A fast Redis becomes slow under a client, and a slow Redis becomes fast.
func TestSlow_SuddenChange(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		way, rdb := faultproxy.Far(t, b.Client, 0)
		locks := locktest.NewClient(t, rdb)
		for i := range 40 {
			way.Set(time.Duration(i%2) * 900 * time.Millisecond)
			acquireAndRelease(t, t.Context(), locks, fmt.Sprint("k", i))
		}
		locktest.Pass(2 * time.Second)
		b.WantGone(b.Keys(t.Context(), "*").Val()...)
	})
}

// A Redis that takes longer than the backend timeout is down. For every wait time, a caller gets the error within the
// backend timeout, even if Redis was slow before.
func TestSlow_SilenceIsStillNoticed(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]bool{"cold": false, "warm": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			way, slow := faultproxy.Far(t, b.Client, 900*time.Millisecond)
			proxy, rdb := faultproxy.Around(t, slow)
			locks := locktest.NewClient(t, rdb)
			if warm {
				acquireAndRelease(t, t.Context(), locks, "k")
			}
			way.Set(time.Hour)
			proxy.BlackHole(true)
			for _, opts := range [][]core.AcquireOption{nil, {core.WaitTime(0)}, {core.WaitTime(time.Minute)}} {
				o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), opts...)
				locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
				if o.Took > core.DefaultBackendTimeout+100*time.Millisecond {
					t.Errorf("the caller failed after %s", o.Took)
				}
			}
		})
	}
}

// The answer to a command takes long, but pings on another connection are answered at once. The client uses the first
// answer to the command that arrives, because no other answer may come.
func TestSlow_OneCommandTakesLong(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} { // of a second
		locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			for _, command := range []string{"sethold", "refresh", "release"} {
				proxy.DelayReply(locktest.ScriptOn(t, command, "k"), takes)
			}
			inner := <-locktest.GoAcquire(ctx, locks.Lock("k"))
			locktest.Must(t, inner.Err)
			locktest.Must(t, inner.Hold.Release(t.Context()))
			locktest.Must(t, hold.Refresh(t.Context(), time.Hour))
			start := time.Now()
			locktest.Must(t, hold.Release(t.Context()))
			if took := time.Since(start); took > core.DefaultBackendTimeout {
				t.Errorf("%s: released after %s", takes, took)
			}
			b.WantGone("k")
		})
	}
}

// Once Redis is known to be down, every operation of the next caller fails at once.
func TestSlow_NextCallerFailsAtOnce(t *testing.T) {
	t.Parallel()
	for _, outage := range []locktest.Outage{locktest.Refused, locktest.Silent} {
		locktest.ParallelBubble(t, outage.Name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			locktest.Must(t, attempt(t, locks, "k"))
			outage.Begin(proxy)
			first := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
			locktest.WantOnly(t, first.Err, core.ErrUnavailable, core.ErrNotAcquired)
			next := <-locktest.GoAcquire(t.Context(), locks.Lock("another"))
			locktest.WantOnly(t, next.Err, core.ErrUnavailable, core.ErrNotAcquired)
			if first.Took > core.DefaultBackendTimeout || next.Took > 0 {
				t.Errorf("the caller failed after %s, and the next caller after %s", first.Took, next.Took)
			}
		})
	}
}

// If a late answer says that the holder is gone, Release does not return nil, because the lock may have been lost
// before.
func TestSlow_LossIsNotARelease(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} {
		for _, end := range []func(h *core.Hold) error{
			func(h *core.Hold) error { return h.Release(context.Background()) },
			func(h *core.Hold) error { return h.Leave(context.Background(), time.Minute) },
		} {
			locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
				locks, proxy := b.BehindAProxy()
				_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
				proxy.DelayReply(locktest.ScriptOn(t, "release", "k"), takes)
				proxy.DelayReply(locktest.ScriptOn(t, "handoff", "k"), takes)
				b.Del(t.Context(), "k")
				locktest.WantErr(t, end(hold), core.ErrUnavailable)
			})
		}
	}
}

// A host that is gone does not refuse connections, and the TLS dialer of go-redis ignores its context. A caller still
// fails within the backend timeout.
func TestSlow_NoConnection(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		gone := make(chan struct{})
		rdb := b.Connect(func(o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				<-gone
				return nil, net.ErrClosed
			}
		})
		locks := locktest.NewClient(t, rdb)
		for _, wait := range []time.Duration{time.Minute, 0} {
			o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(wait))
			locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.Took > core.DefaultBackendTimeout {
				t.Errorf("the caller failed after %s", o.Took)
			}
		}
		close(gone)
	})
}

// Some proxies close connections whose first command is not a handshake. Locks work behind such a proxy, before and
// after an outage.
func TestSlow_ProxyThatRequiresAHandshake(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		way, slow := faultproxy.Far(t, b.Client, 600*time.Millisecond)
		proxy, rdb := faultproxy.Around(t, slow)
		met := false
		proxy.DropRequest(func(cmd []string) bool { // the first command of a connection that pings
			met = met || len(cmd) == 1 && strings.EqualFold(cmd[0], "ping")
			return len(cmd) == 1 && cmd[0] == "PING"
		})
		locks := locktest.NewClient(t, rdb)
		for _, latency := range []time.Duration{600 * time.Millisecond, 0, 900 * time.Millisecond, 0} {
			way.Set(latency)
			for range 5 {
				acquireAndRelease(t, t.Context(), locks, "k")
			}
		}
		proxy.BlackHole(true)
		o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.WantErr(t, o.Err, core.ErrUnavailable)
		proxy.BlackHole(false)
		locktest.Pass(3 * time.Second)
		acquireAndRelease(t, t.Context(), locks, "k")
		if !met {
			t.Error("no ping was sent: nothing is tested")
		}
	})
}
