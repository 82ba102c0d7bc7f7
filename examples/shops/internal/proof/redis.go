package proof

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// backend is the Redis of a program.
type backend struct {
	prefix string // the prefix of every key
	client func() *redis.Client
	close  func()
}

// openBackend embeds a Redis or uses the Redis at url with a separate key prefix.
func openBackend(url string) (*backend, error) {
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return nil, err
		}
		return &backend{
			prefix: "shop:",
			client: func() *redis.Client { return server.Client() },
			close:  server.Close,
		}, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("-redis: not a valid URL (go-redis would quote its password): write redis://[user:password@]host:port/db")
	}
	return &backend{
		prefix: "shops-" + rand.Text()[:6] + ":",
		client: func() *redis.Client { return redis.NewClient(options) },
		close:  func() {},
	}, nil
}

// Prefix returns the prefix of the keys of every lock.
func (p *Proof) Prefix() string { return p.backend.prefix }

// Locks creates a lock client with a separate Redis client, like another process. Both are closed
// at the end of the program.
func (p *Proof) Locks(ctx context.Context, opts ...core.Option) (*core.Client, error) {
	locks, _, err := p.Instance(ctx, opts...)
	return locks, err
}

// Instance is like Locks, for programs that cut an instance off from Redis like a power failure.
func (p *Proof) Instance(ctx context.Context, opts ...core.Option) (locks *core.Client, cut func(), err error) {
	plain := p.backend.client()
	o := *plain.Options()
	_ = plain.Close()
	n := &network{dial: o.Dialer}
	o.Dialer = n.connect
	rdb := redis.NewClient(&o)
	p.onClose(func(context.Context) { _ = rdb.Close() })
	locks, err = core.New(rdb, append(opts, core.WithPrefix(p.Prefix()))...)
	if err != nil {
		return nil, nil, err
	}
	p.onClose(func(ctx context.Context) { _ = locks.Close(ctx) }) // before the Redis client
	err = locks.Ready(ctx)
	return locks, n.cut, err
}

// network holds the connections of one instance.
type network struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	off   bool
	conns []net.Conn
}

func (n *network) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	n.conns = append(n.conns, conn)
	return conn, nil
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = true
	for _, conn := range n.conns {
		_ = conn.Close()
	}
}

func (p *Proof) onClose(f func(context.Context)) { p.closers = append(p.closers, f) }

func (p *Proof) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, closer := range slices.Backward(p.closers) {
		closer(ctx)
	}
	p.backend.close()
}
