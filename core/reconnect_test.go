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
)

// dialed is a client behind a proxy whose attempts to connect are counted.
func (b *bed) dialed(opts ...core.Option) (*core.Client, *faultproxy.Proxy, *atomic.Int64) {
	b.t.Helper()
	var dials atomic.Int64
	proxy, rdb := faultproxy.Around(b.t, b.Client, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, addr)
		}
	})
	return locksOn(b.t, rdb, opts...), proxy, &dials
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy, dials := b.dialed()
			b.take("k", stranger, time.Hour)
			at := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(10*time.Minute))
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
				pass(d)
				return dials.Load() - before
			}
			pass(5 * time.Second)
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
			pass(5 * time.Second)
			if n := in(time.Minute); n > 0 {
				t.Errorf("%d dials in a minute after that", n)
			}
			b.free("k")
			if o := <-at; o.err == nil {
				released(t, o.hold)
			} else {
				wantErr(t, o.err, core.ErrUnavailable)
			}
		})
	}
}
