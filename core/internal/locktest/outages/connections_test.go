package outages_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// namesOn returns the names of the connections to a server.
func namesOn(t *testing.T, rdb *redis.Client) (names []string) {
	t.Helper()
	list, err := rdb.ClientList(t.Context()).Result()
	locktest.Must(t, err)
	for field := range strings.FieldsSeq(list) {
		if name, is := strings.CutPrefix(field, "name="); is && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// The name of a connection ends with the id of the client, after the name that the caller has given it.
func TestWithNamedConnections_Names(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "interlock:", "shop": "shop:"} {
		r := locktest.NewProxied(t)
		locks := r.BehindWith(func(o *redis.Options) { o.ClientName = own }, core.WithNamedConnections())
		if names := namesOn(t, r.Client); !contains(names, want+locks.ID()) {
			t.Errorf("ClientName %q: got %q, want %s", own, names, want+locks.ID())
		}
		r.BehindWith(func(o *redis.Options) { o.ClientName = own })
		for _, name := range namesOn(t, r.Client) {
			if name != own && name != want+locks.ID() {
				t.Errorf("ClientName %q: got %q of a client without the option", own, name)
			}
		}
	}
}

func contains(list []string, want string) bool {
	return strings.Contains("\n"+strings.Join(list, "\n")+"\n", "\n"+want+"\n")
}

// If the user lacks the right, or a proxy does not know the command, the connection has no name. It works at the
// first call.
func TestWithNamedConnections_Refused(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(r *locktest.Redis){
		"no right": func(r *locktest.Redis) {
			locktest.Must(t, r.Client.Do(t.Context(), "acl", "setuser", "default", "-client|setname").Err())
		},
		"unknown command": func(r *locktest.Redis) {
			r.Proxy.AnswerError(faultproxy.Command("CLIENT"), "ERR unknown command 'client'")
		},
		"the proxy hangs up": func(r *locktest.Redis) {
			r.Proxy.DropRequest(faultproxy.Containing("setname"))
		},
		"the proxy is silent": func(r *locktest.Redis) {
			r.Proxy.HoldRequest(faultproxy.Containing("setname"))
		},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			refuse(r)
			rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			locks := locktest.NewClient(t, rdb, core.WithNamedConnections(), core.WithBackendTimeout(15*time.Second))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
			locktest.MustRelease(t, hold)
			if names := namesOn(t, r.Client); contains(names, "interlock:"+locks.ID()) {
				t.Errorf("got %q, want no name", names)
			}
		})
	}
}

// A server that fails while a connection gets its name accepts the names of later connections.
func TestWithNamedConnections_ServerWasDown(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	lost := r.Proxy.DropRequest(faultproxy.Once(faultproxy.Containing("setname")))
	var failed atomic.Int32
	rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if lost.Hits() > 0 && failed.Add(1) <= 3 { // on a busy machine there may be two more attempts
			return nil, syscall.ECONNREFUSED
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb, core.WithNamedConnections(), locktest.Patient)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
	if names := namesOn(t, r.Client); failed.Load() == 0 || !contains(names, "interlock:"+locks.ID()) {
		t.Errorf("got %q, want the name of the client", names)
	}
	locktest.MustRelease(t, hold)
}

// In a Cluster the connections to every node have the name of the client.
func TestWithNamedConnections_InACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.NewClient(t, cluster.Client(), core.WithNamedConnections())
	for _, key := range []string{"a", "b", "c"} { // on three masters
		locktest.Must(t, locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil }))
		if names := namesOn(t, cluster.Master(key).Client()); !contains(names, "interlock:"+locks.ID()) {
			t.Errorf("%s: got %q", key, names)
		}
	}
}

// metricsRecorder records the metrics of go-redis. Like redisotel-native, it has a label set of every metric for each
// pool.
type metricsRecorder struct {
	mu     sync.Mutex
	pools  map[string]bool
	closed map[string]int // connections, by reason
}

func (m *metricsRecorder) pool(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools[name] = true
}

func (m *metricsRecorder) counts() (pools, closed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.closed {
		closed += n
	}
	return len(m.pools), closed
}

func (m *metricsRecorder) RegisterPool(name string, _ redis.Pooler) { m.pool(name) }

func (m *metricsRecorder) RegisterPubSubPool(name string, _ redis.PubSubPooler) { m.pool(name) }

func (*metricsRecorder) UnregisterPool(redis.Pooler) {}

func (*metricsRecorder) UnregisterPubSubPool(redis.PubSubPooler) {}

func (m *metricsRecorder) RecordConnectionClosed(_ context.Context, cn redis.ConnInfo, reason string, _ error) {
	if cn != nil {
		m.pool(cn.PoolName())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed[reason]++
}

func (m *metricsRecorder) RecordConnectionCreateTime(_ context.Context, _ time.Duration, cn redis.ConnInfo) {
	m.pool(cn.PoolName())
}

func (*metricsRecorder) RecordOperationDuration(context.Context, time.Duration, redis.Cmder, int, error, redis.ConnInfo, int) {
}

func (*metricsRecorder) RecordPipelineOperationDuration(context.Context, time.Duration, string, int, int, error, redis.ConnInfo, int) {
}

func (*metricsRecorder) RecordConnectionRelaxedTimeout(context.Context, int, redis.ConnInfo, string, string) {
}

func (*metricsRecorder) RecordConnectionHandoff(context.Context, redis.ConnInfo, string) {}

func (*metricsRecorder) RecordError(context.Context, string, redis.ConnInfo, string, bool, int) {}

func (*metricsRecorder) RecordMaintenanceNotification(context.Context, redis.ConnInfo, string) {}

func (*metricsRecorder) RecordConnectionWaitTime(context.Context, time.Duration, redis.ConnInfo) {}

func (*metricsRecorder) RecordPubSubMessage(context.Context, redis.ConnInfo, string, string, bool) {}

func (*metricsRecorder) RecordStreamLag(context.Context, time.Duration, redis.ConnInfo, string, string, string) {
}

// However often the connections of locks are replaced, the metrics of go-redis contain only the pools of the caller's
// client and of one more client for OnConnect. The test is not parallel because the process has one recorder.
func TestNew_PoolsSeenByMetrics(t *testing.T) { //nolint:paralleltest // see above
	for name, test := range map[string]struct {
		change func(o *redis.Options)
		more   int
	}{
		"connections":          {change: func(*redis.Options) {}},
		"with ConnMaxLifetime": {change: func(o *redis.Options) { o.ConnMaxLifetime = 100 * time.Millisecond }},
		"with OnConnect": {
			change: func(o *redis.Options) {
				o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Ping(ctx).Err() }
			},
			more: 3, // the names of a client for its pool, its connections and its subscriptions
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &metricsRecorder{pools: make(map[string]bool), closed: make(map[string]int)}
				b := locktest.Embedded(t)
				redis.SetOTelRecorder(seen)
				defer redis.SetOTelRecorder(nil)
				proxy, rdb := faultproxy.Around(t, b.Client, test.change)
				before, _ := seen.counts()
				locks := locktest.NewClient(t, rdb)
				var made int
				watch := proxy.Watch(faultproxy.Command("ping"))
				for range 50 {
					b.Warm(locks)
					proxy.Cut()
					locktest.Pass(time.Second)
				}
				made = watch.Hits()
				after, closed := seen.counts()
				if made < 50 {
					t.Errorf("%d connections, want 50 or more", made)
				}
				if after > before+test.more {
					t.Errorf("%d pools after %d connections, want the %d of the client and %d more: %q",
						after, made, before, test.more, slices.Sorted(maps.Keys(seen.pools)))
				}
				if test.more == 0 && closed > 0 {
					t.Errorf("%d connections of pools have ended: %v", closed, seen.closed)
				}
			})
		})
	}
}

// breakers is a Limiter of the caller. While it is open, it rejects every command.
type breakers struct{ open atomic.Bool }

var errOpen = errors.New("the circuit breaker of the business is open")

func (b *breakers) Allow() error {
	if b.open.Load() {
		return errOpen
	}
	return nil
}

func (*breakers) ReportResult(error) {}

// The Limiter and the pool of the caller's client are for the commands of the caller. While the Limiter is open or
// the pool is full, locks are acquired, renewed and released, messages wake waiters, and every other operation of a
// Client works.
func TestNew_BesideThePoolOfTheCaller(t *testing.T) {
	t.Parallel()
	for fault, begin := range map[string]func(t *testing.T, b *locktest.Redis) *redis.Client{
		"limiter is open": func(t *testing.T, b *locktest.Redis) *redis.Client {
			t.Helper()
			limiter := &breakers{}
			rdb := b.Connect(func(o *redis.Options) { o.Limiter = limiter })
			limiter.open.Store(true)
			locktest.WantErr(t, rdb.Ping(t.Context()).Err(), errOpen)
			return rdb
		},
		"pool is full": func(t *testing.T, b *locktest.Redis) *redis.Client {
			t.Helper()
			rdb := b.Connect(func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 2, -1 })
			for range 2 {
				go rdb.BLPop(t.Context(), 0, "jobs") // until the server closes
			}
			locktest.Pass(time.Second)
			if stats := rdb.PoolStats(); stats.TotalConns != 2 || stats.IdleConns != 0 {
				t.Fatalf("%d connections, %d idle: want 2 in use", stats.TotalConns, stats.IdleConns)
			}
			return rdb
		},
	} {
		for with, opts := range map[string][]core.Option{
			"master alone": nil, "replicas": {core.WithReplicaAcks(core.AcksAll, time.Second)},
		} {
			t.Run(fault+"/"+with, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					locktest.EndWithinADay(t)
					srv := redistest.New(t)
					srv.Replicas(1, 1)
					b := &locktest.Redis{T: t, Embedded: srv, Client: srv.Client(), Connect: srv.Client}
					rdb := begin(t, b)
					seen := &locktest.Renewals{}
					wantAllOf(t, b, locktest.NewClient(t, rdb, append(opts, core.WithObserver(seen.Observer()))...), seen)
				})
			})
		}
	}
}

// wantAllOf checks that every operation of a client succeeds at once.
func wantAllOf(t *testing.T, b *locktest.Redis, locks *core.Client, seen *locktest.Renewals) {
	t.Helper()
	ctx := t.Context()
	start := time.Now()
	locktest.Must(t, locks.Ready(ctx))
	held, hold := locktest.MustAcquire(t, ctx, locks.Lock("k"))
	holds := []*core.Hold{hold}
	for _, lock := range []core.Lock{
		locks.FencedLock("fenced"), locks.FairLock("fair"), locks.ReadLock("rw"), locks.MultiLock("a", "b"),
		locks.Semaphore("permits", 2).Lock,
	} {
		_, one := locktest.MustAcquire(t, ctx, lock)
		holds = append(holds, one)
	}
	locktest.WantSoon(t, "acquisitions took %s", start, time.Millisecond)
	locktest.Pass(3 * core.DefaultWatchdog)
	locktest.WantAlive(t, held)
	if seen.Good() < 3*3*len(holds) || seen.Failure() != nil {
		t.Errorf("%d renewals succeeded, and a renewal failed: %v", seen.Good(), seen.Failure())
	}
	start = time.Now()
	locktest.Must(t, hold.Refresh(ctx, time.Minute))
	entry, err := locks.Inspect(ctx, "k")
	locktest.Must(t, err)
	if len(entry.Holders) != 1 {
		t.Errorf("%d holders, want 1", len(entry.Holders))
	}
	locktest.Must(t, locks.PlainSemaphore("count").AddPermits(ctx, 2))
	locktest.WantGot(t, "permits", 2)(locks.PlainSemaphore("count").Available(ctx))
	for _, h := range holds {
		locktest.MustRelease(t, h)
	}
	_, lost := locktest.MustAcquire(t, ctx, locks.Lock("lost"))
	locktest.WantGot(t, "forced", true)(locks.Lock("lost").ForceRelease(ctx))
	locktest.WantErr(t, lost.Release(ctx), core.ErrLost)
	locktest.WantSoon(t, "the other operations took %s", start, time.Millisecond)

	_, other := locktest.MustAcquire(t, ctx, b.Locks().Lock("contended"))
	at := locktest.AcquiredAt(t, locks, "contended")
	locktest.Pass(90 * time.Millisecond)
	start = time.Now()
	locktest.MustRelease(t, other)
	if took := (<-at).Sub(start); took > time.Millisecond {
		t.Errorf("a waiter has the lock %s after its release, want at most 1ms: no message has woken it", took)
	}
}

// dialed returns a client like rdb, changed by opts, and a count of its connections.
func dialed(t *testing.T, rdb *redis.Client, opts ...func(*redis.Options)) (*atomic.Int64, *redis.Client) {
	t.Helper()
	var made atomic.Int64
	o := *rdb.Options()
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		made.Add(1)
		return dial(ctx, network, addr)
	}
	for _, opt := range opts {
		opt(&o)
	}
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return &made, client
}

// countDials returns a client behind a proxy, and a count of its attempts to connect.
func countDials(b *locktest.Redis, change func(*redis.Options), opts ...core.Option) (*core.Client, *faultproxy.Proxy, *atomic.Int64) {
	b.T.Helper()
	var dials atomic.Int64
	proxy, rdb := faultproxy.Around(b.T, b.Client, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, addr)
		}
		change(o)
	})
	return locktest.NewClient(b.T, rdb, opts...), proxy, &dials
}

// reconnection is an outage together with the options of a client that needs them to be in it.
type reconnection struct {
	locktest.Outage

	options func(*redis.Options)
}

// wrongPassword returns an outage in which the server has another password. Before and after, the client needs none.
func wrongPassword() reconnection {
	var password atomic.Pointer[string]
	password.Store(new(string))
	begin := func(p *faultproxy.Proxy) (end func()) {
		password.Store(new("old"))
		rule := p.AnswerError(faultproxy.Command("auth", "hello"), "WRONGPASS invalid username-password pair or user is disabled.")
		p.Cut()
		return func() {
			password.Store(new(string))
			rule.Remove()
		}
	}
	return reconnection{locktest.Outage{Name: "wrong password", Begin: begin}, func(o *redis.Options) {
		o.CredentialsProvider = func() (string, string) { return "", *password.Load() }
	}}
}

// wrongDatabase returns an outage in which the user has no right to SELECT.
func wrongDatabase() reconnection {
	begin := func(p *faultproxy.Proxy) (end func()) {
		rule := p.AnswerError(faultproxy.Command("select"), "NOPERM this user has no permissions to run the 'select' command")
		p.Cut()
		return rule.Remove
	}
	return reconnection{locktest.Outage{Name: "no right to the database", Begin: begin}, func(o *redis.Options) { o.DB = 1 }}
}

// closedAt returns an outage in which a connection is closed when it sends a command.
func closedAt(command string) locktest.Outage {
	return locktest.Outage{Name: "closed at " + command, Begin: func(p *faultproxy.Proxy) func() {
		rule := p.DropRequest(faultproxy.Command(command))
		p.Cut()
		return rule.Remove
	}}
}

// While connections are refused, or closed at once, the client dials about once a second, however long that lasts and
// however many callers there are. When Redis is back, everything works as before.
func TestReconnect_BacksOff(t *testing.T) {
	t.Parallel()
	for _, test := range []func() reconnection{
		func() reconnection { return reconnection{Outage: locktest.Refused} },
		func() reconnection { return reconnection{Outage: locktest.TooManyClients} },
		func() reconnection { return reconnection{Outage: closedAt("subscribe")} },
		func() reconnection { return reconnection{Outage: closedAt("ping")} },
		wrongPassword,
		wrongDatabase,
	} {
		locktest.ParallelBubble(t, test().Name, func(t *testing.T, b *locktest.Redis) { backsOff(t, b, test()) })
		locktest.ParallelBubble(t, test().Name+", with replicas", func(t *testing.T, b *locktest.Redis) {
			b.Embedded.Replicas(1, 1)
			backsOff(t, b, test(), core.WithReplicaAcks(1, 100*time.Millisecond))
		})
	}
}

// backsOff counts the dials of a client with waiters and callers during an outage, and after it.
func backsOff(t *testing.T, b *locktest.Redis, outage reconnection, opts ...core.Option) {
	t.Helper()
	if outage.options == nil {
		outage.options = func(*redis.Options) {}
	}
	locks, proxy, dials := countDials(b, outage.options, opts...)
	_, stranger := locktest.MustAcquire(t, t.Context(), locktest.NewClient(t, b.Connect(outage.options)).Lock("k"), core.LeaseTime(time.Hour))
	at := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(10*time.Minute))
	var callers sync.WaitGroup
	over := make(chan struct{})
	for range 20 {
		callers.Go(func() {
			for again := true; again; {
				_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(2*time.Second))
				if err == nil {
					t.Error("acquired although another client has the lock")
				}
				select {
				case <-over:
					again = false
				case <-time.After(100 * time.Millisecond): // in the time of the bubble: between two calls
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
	end := outage.Begin(proxy)
	first, minute := in(10*time.Second), in(time.Minute)
	t.Logf("%d dials in the first ten seconds, %.1f a second after that", first, float64(minute)/60)
	if first > 120 {
		t.Errorf("%d dials in the first ten seconds, want at most 120", first)
	}
	if minute > 3*60 {
		t.Errorf("%d dials in a minute, want at most 180", minute)
	}
	end()
	close(over)
	callers.Wait()
	locktest.Pass(5 * time.Second)
	if n := in(time.Minute); n > 0 {
		t.Errorf("%d dials in a minute after that, want none", n)
	}
	locktest.MustRelease(t, stranger)
	if o := <-at; o.Err == nil {
		locktest.MustRelease(t, o.Hold)
	} else {
		locktest.WantErr(t, o.Err, core.ErrUnavailable)
	}
}
