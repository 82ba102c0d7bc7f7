package faultproxy

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// Around returns a client like rdb, changed by opts, whose connections pass through a proxy in memory.
// With a client of redistest it works in a synctest bubble, where every fault happens at an exact
// time. The client and the proxy are closed when the test ends.
func Around(tb testing.TB, rdb *redis.Client, opts ...func(*redis.Options)) (*Proxy, *redis.Client) {
	tb.Helper()
	o := *rdb.Options()
	behind, ctx := o.Dialer, context.WithoutCancel(tb.Context()) // cleanups may still connect
	p := Open(func() (net.Conn, error) { return behind(ctx, o.Network, o.Addr) })
	tb.Cleanup(p.Close)
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		near, far := mempipe.New()
		return near, p.Serve(far)
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1 // the original value: NewClient replaced it and would treat 0 as the default
	}
	for _, opt := range opts {
		opt(&o)
	}
	through := redis.NewClient(&o)
	tb.Cleanup(func() { _ = through.Close() })
	return p, through
}
