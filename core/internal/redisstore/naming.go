package redisstore

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// naming gives the connections to a node a name that ends with the id of their owner.
type naming struct {
	owner  string      // empty: none is named
	broken atomic.Bool // a connection has ended when it was named
}

// wanted reports whether the next connection is to be named.
func (n *naming) wanted() bool { return n.owner != "" && !n.broken.Load() }

// name names a connection, after the name that the caller's client gives it. If a server refuses, the connection
// has no name. If it does not answer, or hangs up, as some proxies do, no later connection is named.
func (n *naming) name(ctx context.Context, conn *redis.Conn, callers string) error {
	if !n.wanted() {
		return nil
	}
	err := conn.ClientSetName(ctx, cmp.Or(callers, "interlock")+":"+n.owner).Err()
	if _, refused := errors.AsType[redis.Error](err); err == nil || refused {
		return nil
	}
	n.broken.Store(true)
	return err
}
