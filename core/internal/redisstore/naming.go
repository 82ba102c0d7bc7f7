package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errNaming says that a connection has ended, or was silent, when it was named.
var errNaming = errors.New("the connection cannot be named")

// name names a connection after its owner, behind the name that the caller's client gives it. If the server refuses,
// or without an owner, the connection has no name. Some proxies do not answer, or hang up: that is errNaming.
func name(ctx context.Context, conn *redis.Conn, callers, owner string) error {
	if owner == "" {
		return nil
	}
	err := conn.ClientSetName(ctx, cmp.Or(callers, "interlock")+":"+owner).Err()
	if _, refused := errors.AsType[redis.Error](err); err == nil || refused {
		return nil
	}
	return errNaming
}
