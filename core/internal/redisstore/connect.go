package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect makes a connection as the caller's client makes those of its pool, with its
// dialer, TLS, credentials, protocol, database and OnConnect, and takes it away from
// go-redis, which has no way to write and read at the same time on one of its own that is
// fast with many callers.
func connect(ctx context.Context, client *redis.Client, timeout time.Duration, owner string) (net.Conn, error) {
	opts := *client.Options()
	raw, err := dialOnce(ctx, &opts)
	if err != nil {
		return nil, err
	}
	usable := false
	defer func() {
		if !usable { // it may be a panic
			_ = raw.Close() //nolint:errcheck // nothing was entrusted to it
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })() //nolint:errcheck // it ends the introduction
	taken := &takenConn{Conn: raw}
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) { return taken, nil }
	introduce := opts.OnConnect
	opts.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if introduce != nil {
			if err := introduce(ctx, conn); err != nil {
				return err
			}
		}
		if err := name(ctx, conn, opts.ClientName, owner); err != nil {
			return err
		}
		taken.ours = true
		return errTaken
	}
	opts.ReadTimeout, opts.WriteTimeout, opts.ContextTimeoutEnabled = timeout, timeout, true
	opts.MaxRetries, opts.DialerRetries = -1, 1
	opts.PoolSize, opts.PipelinePoolSize, opts.MinIdleConns, opts.MaxIdleConns, opts.MaxActiveConns = 1, 1, 0, 0, 0
	opts.Limiter, opts.ClientSideCache, opts.ClientSideCacheConfig = nil, nil, nil
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	once := redis.NewClient(&opts)
	defer once.Close() //nolint:errcheck // what it has is ours, or has ended
	if err = once.Ping(ctx).Err(); !taken.ours {
		return nil, err
	}
	if err = raw.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("a connection needs deadlines: %w", err)
	}
	usable = true
	return raw, nil
}

// dialOnce calls the dialer of a client with the time limit that its pool gives it.
func dialOnce(ctx context.Context, opts *redis.Options) (net.Conn, error) {
	if opts.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.DialTimeout)
		defer cancel()
	}
	conn, err := opts.Dialer(ctx, opts.Network, opts.Addr)
	if conn == nil && err == nil {
		err = errNoConnection
	}
	return conn, err
}

// takenConn is a connection that go-redis has prepared, and must not close any more.
type takenConn struct {
	net.Conn

	ours bool
}

// Close does nothing when the connection is ours.
func (c *takenConn) Close() error {
	if c.ours {
		return nil
	}
	return c.Conn.Close()
}

// errTaken ends what go-redis does with a connection.
var errTaken = errors.New("the connection is taken")
