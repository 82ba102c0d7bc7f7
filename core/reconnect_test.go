package core_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// dialed is a client behind a proxy whose attempts to connect are counted.
func countDials(b *locktest.Redis, opts ...core.Option) (*core.Client, *faultproxy.Proxy, *atomic.Int64) {
	b.T.Helper()
	var dials atomic.Int64
	proxy, rdb := faultproxy.Around(b.T, b.Client, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, addr)
		}
	})
	return locktest.NewClient(b.T, rdb, opts...), proxy, &dials
}

// Connections that are refused, or closed before they are of use, are made about once a second, however long that
// lasts and however many call. When Redis is back everything is as before.
func TestReconnect_BacksOff(t *testing.T) {
	t.Parallel()
	closedAt := func(command string) func(p *faultproxy.Proxy) (end func()) {
		return func(p *faultproxy.Proxy) func() {
			rule := p.DropRequest(faultproxy.Command(command))
			p.Cut()
			return rule.Remove
		}
	}
	for name, fault := range map[string]func(p *faultproxy.Proxy) (end func()){
		"refused": func(p *faultproxy.Proxy) func() {
			p.Refuse(true)
			return func() { p.Refuse(false) }
		},
		"closed at the subscription": closedAt("subscribe"),
		"closed at the ping":         closedAt("ping"),
		"too many clients": func(p *faultproxy.Proxy) func() {
			rule := p.AnswerError(faultproxy.Any(), "ERR max number of clients reached")
			p.Cut()
			return rule.Remove
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy, dials := countDials(b)
			b.Take("k", locktest.Stranger, time.Hour)
			at := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(10*time.Minute))
			var callers sync.WaitGroup
			over := make(chan struct{})
			for range 20 {
				callers.Go(func() {
					for again := true; again; {
						_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(2*time.Second))
						if err == nil {
							t.Error("acquired although another one has it")
						}
						select {
						case <-over:
							again = false
						case <-time.After(100 * time.Millisecond): // of the bubble: between two calls
						}
					}
				})
			}
			in := func(d time.Duration) int64 {
				before := dials.Load()
				locktest.Pass(d)
				return dials.Load() - before
			}
			locktest.Pass(5 * time.Second)
			end := fault(proxy)
			if n := in(10 * time.Second); n > 120 {
				t.Errorf("%d dials in the first ten seconds", n)
			}
			if n := in(time.Minute); n > 3*60 {
				t.Errorf("%d dials in a minute", n)
			}
			end()
			close(over)
			callers.Wait()
			locktest.Pass(5 * time.Second)
			if n := in(time.Minute); n > 0 {
				t.Errorf("%d dials in a minute after that", n)
			}
			b.Free("k")
			if o := <-at; o.Err == nil {
				locktest.MustRelease(t, o.Hold)
			} else {
				locktest.WantErr(t, o.Err, core.ErrUnavailable)
			}
		})
	}
}
