package locktest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// Redis is one server that a test has for itself.
type Redis struct {
	*redis.Client // connects to the server without a proxy

	T       *testing.T
	Opts    []core.Option                                    // of the lock clients that Locks, Counted, BehindAProxy and BehindHooks return
	Connect func(opts ...func(*redis.Options)) *redis.Client // makes further clients like Client

	Embedded *redistest.Server   // nil if the server is real
	Server   *redisserver.Server // nil if the server is embedded

	Proxy   *faultproxy.Proxy // before a server of NewServers, NewProxied or World, otherwise nil
	Through *redis.Client     // connects through Proxy to an embedded server; otherwise nil
}

// Patient keeps a client from taking a busy machine for a Redis that is down.
var Patient = core.WithBackendTimeout(10 * time.Second)

// EachRedis runs a test on the embedded Redis, and on a real one of each binary.
func EachRedis(t *testing.T, body func(t *testing.T, b *Redis)) {
	t.Helper()
	Parallel(t, "embedded", func(t *testing.T) {
		b := Embedded(t)
		b.Opts = []core.Option{Patient}
		body(t, b)
	})
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		t.Helper()
		body(t, On(t, binary.Start(t)))
	})
}

// Embedded starts an embedded Redis. It works in a bubble.
func Embedded(t *testing.T) *Redis {
	t.Helper()
	srv := redistest.New(t)
	return &Redis{T: t, Embedded: srv, Client: srv.Client(), Connect: srv.Client}
}

// Real starts a real Redis.
func Real(t *testing.T) *Redis {
	t.Helper()
	return On(t, redisserver.Start(t))
}

// On returns a Redis on a real server. Its lock clients are Patient.
func On(t *testing.T, srv *redisserver.Server) *Redis {
	t.Helper()
	return &Redis{T: t, Server: srv, Client: srv.Client(), Connect: srv.Client, Opts: []core.Option{Patient}}
}

// NewServers starts n independent embedded servers, each with a proxy before it.
func NewServers(t *testing.T, n int) []*Redis {
	t.Helper()
	servers := make([]*Redis, n)
	for i := range servers {
		servers[i] = Embedded(t)
		servers[i].Proxy, servers[i].Through = faultproxy.Around(t, servers[i].Client)
	}
	return servers
}

// NewProxied starts a real Redis that knows all scripts, with a proxy before it.
func NewProxied(t *testing.T) *Redis {
	t.Helper()
	b := Real(t)
	b.LoadScripts()
	b.Proxy = faultproxy.New(t, b.Server.Addr())
	return b
}

// LoadScripts loads all scripts of this library, so that rules do not match commands that fail with NOSCRIPT.
func (b *Redis) LoadScripts() {
	b.T.Helper()
	for _, source := range ScriptSources(b.T) {
		Must(b.T, b.ScriptLoad(context.Background(), source).Err())
	}
}

// Locks returns a new lock client, which stands for a separate process. Holds that are left at the end of the test stay
// in Redis.
func (b *Redis) Locks(opts ...core.Option) *core.Client {
	b.T.Helper()
	return NewClient(b.T, b.Connect(), slices.Concat(b.Opts, opts)...)
}

// NewClient returns a lock client on rdb. The test closes the client at its end and leaves the holds in Redis.
func NewClient(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	Must(t, err)
	t.Cleanup(func() { _ = locks.Close(t.Context()) }) // the context has ended: Close returns at once
	return locks
}

// Counted returns a lock client, and a rule that counts the scripts that it sends.
func (b *Redis) Counted(opts ...core.Option) (*core.Client, *faultproxy.Rule) {
	b.T.Helper()
	proxy, rdb := faultproxy.Around(b.T, b.Client)
	return NewClient(b.T, rdb, slices.Concat(b.Opts, opts)...), proxy.Watch(Scripts)
}

// BehindAProxy returns a lock client with a separate proxy. The server knows all scripts.
func (b *Redis) BehindAProxy(opts ...core.Option) (*core.Client, *faultproxy.Proxy) {
	b.T.Helper()
	b.LoadScripts()
	return b.BehindAFreshProxy(opts...)
}

// BehindAFreshProxy returns a lock client with a separate proxy. The server knows only the scripts of Lock.
func (b *Redis) BehindAFreshProxy(opts ...core.Option) (*core.Client, *faultproxy.Proxy) {
	b.T.Helper()
	proxy, rdb := faultproxy.Around(b.T, b.Client)
	locks := NewClient(b.T, rdb, slices.Concat(b.Opts, opts)...)
	b.Warm(locks)
	return locks, proxy
}

// Behind returns a lock client that connects to a real server through Proxy. Its connections are open.
func (b *Redis) Behind(opts ...core.Option) *core.Client {
	b.T.Helper()
	return b.BehindWith(nil, opts...)
}

// BehindWith is like Behind, but change may change the options of go-redis.
func (b *Redis) BehindWith(change func(*redis.Options), opts ...core.Option) *core.Client {
	b.T.Helper()
	o := &redis.Options{Addr: b.Proxy.Addr()}
	if change != nil {
		change(o)
	}
	rdb := redis.NewClient(o)
	b.T.Cleanup(func() { _ = rdb.Close() })
	locks := NewClient(b.T, rdb, opts...)
	Warm(b.T, locks)
	return locks
}

// Beside returns a Patient lock client that does not connect through Proxy. Its connections are open.
func (b *Redis) Beside() *core.Client {
	b.T.Helper()
	locks := NewClient(b.T, b.Connect(), Patient)
	Warm(b.T, locks)
	return locks
}

// BehindHooks returns a lock client whose Redis client has these hooks.
func (b *Redis) BehindHooks(hooks ...redis.Hook) (*faultproxy.Proxy, *core.Client) {
	b.T.Helper()
	proxy, rdb := faultproxy.Around(b.T, b.Client)
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	return proxy, NewClient(b.T, rdb, b.Opts...)
}

// WithoutMessages returns a lock client whose subscriptions are never confirmed, as with an ACL that lacks the channel.
func (b *Redis) WithoutMessages() *core.Client {
	b.T.Helper()
	locks, proxy := b.BehindAProxy()
	proxy.HoldRequest(faultproxy.Command("subscribe"))
	return locks
}

// BehindEach returns the lock clients of one process: one for each server, behind the proxy of the server.
func BehindEach(t *testing.T, servers []*Redis, opts ...core.Option) []*core.Client {
	t.Helper()
	clients := make([]*core.Client, len(servers))
	for i, s := range servers {
		clients[i] = NewClient(t, s.Through, opts...)
	}
	return clients
}

// Warm takes a lock once, so that the server knows the scripts of Lock.
func (b *Redis) Warm(locks *core.Client) {
	b.T.Helper()
	Must(b.T, locks.Lock("warm").Do(context.Background(), func(context.Context) error { return nil }))
}

// Warm opens the connections of clients and loads the scripts of a lock. It retries, because on a busy machine the first
// attempt may take longer than a short backend timeout.
func Warm(t *testing.T, clients ...*core.Client) {
	t.Helper()
	for _, c := range clients {
		Eventually(t, "the client has its connections", func() bool {
			return c.Ready(t.Context()) == nil && c.Lock("warm").Do(t.Context(), func(context.Context) error { return nil }) == nil
		})
	}
}

// Nowhere returns a client of a port on which no server listens.
func Nowhere(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// TakeDown stops embedded servers.
func TakeDown(servers ...*Redis) {
	for _, s := range servers {
		s.Embedded.Down()
	}
}

// Has reports whether a key exists.
func (b *Redis) Has(key string) bool {
	return b.Exists(context.Background(), key).Val() == 1
}

// HeldOn returns on how many servers a lock exists.
func HeldOn(servers []*Redis, key string) (n int) {
	for _, s := range servers {
		n += int(s.Exists(context.Background(), key).Val())
	}
	return n
}

// AwaitGone waits until a key is gone.
func (b *Redis) AwaitGone(key string) {
	b.T.Helper()
	Eventually(b.T, key+" gone", func() bool { return !b.Has(key) })
}

// AwaitListeners waits until n clients listen for the messages of a lock.
func (b *Redis) AwaitListeners(key string, n int64) {
	b.T.Helper()
	b.awaitSubscribers(ChannelOf(key), n)
}

// AwaitReadWriteListener waits until a client listens for the messages of a read-write lock.
func (b *Redis) AwaitReadWriteListener(key string) {
	b.T.Helper()
	b.awaitSubscribers(ReadWriteChannelOf(key), 1)
}

func (b *Redis) awaitSubscribers(channel string, n int64) {
	b.T.Helper()
	Eventually(b.T, "the expected number of subscribers", func() bool {
		return b.PubSubNumSub(context.Background(), channel).Val()[channel] >= n
	})
}

// Messages reads the messages of one channel.
type Messages struct {
	*redis.PubSub

	t *testing.T
}

// SubscribeTo subscribes to a channel and waits until the server has confirmed the subscription.
func (b *Redis) SubscribeTo(t *testing.T, channel string) *Messages {
	t.Helper()
	sub := b.Client.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Messages{PubSub: sub, t: t}
}

// Want waits for the next messages and compares them.
func (m *Messages) Want(payloads ...string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), HangTimeout)
	defer cancel()
	for _, want := range payloads {
		got, err := m.ReceiveMessage(ctx)
		if err != nil {
			m.t.Fatalf("message %q: %v", want, err)
		}
		if got.Payload != want {
			m.t.Errorf("message: got %q, want %q", got.Payload, want)
		}
	}
}

// Tagged puts a key in braces, as the hash tag in the names of other keys. A key that contains braces is not changed.
func Tagged(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return "{" + key + "}"
}
