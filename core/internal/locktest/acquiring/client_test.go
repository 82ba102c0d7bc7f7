package acquiring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

func TestNew_UnsupportedClients(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, rdb := range map[string]redis.UniversalClient{
		"Ring": ring, "nil": nil, "nil *redis.Client": (*redis.Client)(nil), "nil *redis.ClusterClient": (*redis.ClusterClient)(nil),
		"struct": struct{ redis.UniversalClient }{},
	} {
		locks, err := core.New(rdb)
		locktest.WantErr(t, err, core.ErrInvalid)
		if locks != nil {
			t.Errorf("%s: got a client with an error", name)
		}
		if err != nil && name == "Ring" && !strings.Contains(err.Error(), "*redis.Client") {
			t.Errorf("the error does not say what to use: %v", err)
		}
	}
}

func TestNew_ReportsAllBadOptions(t *testing.T) {
	t.Parallel()
	bad := map[string]core.Option{
		"nil Option":              nil,
		"WithWatchdog(99ms)":      core.WithWatchdog(99 * time.Millisecond),
		"WithWatchdog(-":          core.WithWatchdog(-time.Second),
		"WithBackendTimeout(0s)":  core.WithBackendTimeout(0),
		"WithBackendTimeout(1h":   core.WithBackendTimeout(time.Hour),
		"WithMaxWaitersPerKey(0)": core.WithMaxWaitersPerKey(0),
		"WithMaxWaiters(-1)":      core.WithMaxWaiters(-1),
		"WithMaxKeyLength(0)":     core.WithMaxKeyLength(0),
		"WithPubSub(3)":           core.WithPubSub(3),
		"WithObserver":            core.WithObserver(nil),
	}
	var all []core.Option
	for name, opt := range bad {
		if _, err := core.New(locktest.Nowhere(t), opt); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
		all = append(all, opt)
	}
	_, err := core.New(locktest.Nowhere(t), all...)
	for name := range bad {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing in\n%v", name, err)
		}
	}
}

func TestNew_RedisMayBeDown(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithBackendTimeout(50*time.Millisecond))
	locktest.WantErr(t, locks.Ready(t.Context()), core.ErrUnavailable)
	_, _, err := locks.Lock("k").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("%v: Redis is down, and the error says that the lock is taken", err)
	}
	_, err = locks.Lock("k").State(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	_, err = locks.Lock("k").ForceRelease(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
}

func TestClient_ReadyAndIdentity(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		one, two := b.Locks(core.WithPrefix("p:")), b.Locks()
		locktest.WantOK(t, one.Ready(t.Context()))
		if one.ID() == two.ID() || one.Prefix() != "p:" || two.Prefix() != "" {
			t.Errorf("got %s %q, %s %q", one.ID(), one.Prefix(), two.ID(), two.Prefix())
		}
	})
}

// The address of a client names its Redis, without user name and password.
func TestClient_Address(t *testing.T) {
	t.Parallel()
	for want, rdb := range map[string]redis.UniversalClient{
		"cache:6379, database 3":               redis.NewClient(&redis.Options{Addr: "cache:6379", DB: 3, Username: "user", Password: "secret"}),
		"Cluster at a:1, b:2":                  redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:1", "b:2"}, Password: "secret"}),
		"the master of a Sentinel, database 0": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"s:1"}}),
	} {
		locks, err := core.New(rdb)
		locktest.Must(t, err)
		locktest.WantSame(t, "address", locks.Address(), want)
		locktest.WantOK(t, errors.Join(locks.Close(t.Context()), rdb.Close()))
	}
}

func TestClient_HoldsAndStats(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, a := locktest.MustAcquire(t, t.Context(), locks.Lock("a"), core.Label("one"))
		_, again := locktest.MustAcquire(t, ctx, locks.Lock("a"))
		_, both := locktest.MustAcquire(t, t.Context(), locks.MultiLock("b", "c"))
		waiting, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(waiting, locks, "a", 2)
		locktest.Pass(3 * time.Second)

		s := locks.Stats()
		if s.Holds != 3 || s.Waiters != 2 || s.OldestWait != 3*time.Second || s.OldestHold != 3*time.Second {
			t.Errorf("stats: got %+v, want 3 locks held for 3s, 2 waiters for 3s", s)
		}
		count := make(map[string]int)
		for _, h := range locks.Holds() {
			count[h.Key]++
			if h.Key == "b" && h.Keys != 2 || h.Field == "" {
				t.Errorf("hold: got %+v", h)
			}
		}
		if count["a"] != 2 || count["b"] != 1 || len(count) != 2 {
			t.Errorf("holds: got %v", count)
		}
		cancel()
		<-done
		for _, h := range []*core.Hold{both, again, a} {
			locktest.MustRelease(t, h)
		}
		if s := locks.Stats(); s != (core.Stats{}) || len(locks.Holds()) != 0 {
			t.Errorf("at the end: got %+v, %v", s, locks.Holds())
		}
	})
}

func TestOpen_OwnsItsClient(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks, err := core.Open("redis://"+srv.Addr()+"/0", core.WithPrefix("p:"))
	locktest.Must(t, err)
	locktest.WantOK(t, locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
	locktest.WantOK(t, locks.Close(t.Context()))
}

func TestOpen_BadURLAndBadOption(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "http://127.0.0.1", "redis://127.0.0.1:port", "127.0.0.1:6379"} {
		_, err := core.Open(url)
		locktest.WantErr(t, err, core.ErrInvalid)
		if err != nil && !strings.Contains(err.Error(), "want redis://user:password@host:6379/0") {
			t.Errorf("%q: the error does not show a good URL: %v", url, err)
		}
	}
	_, err := core.Open("redis://127.0.0.1:1", core.WithMaxWaiters(0))
	locktest.WantErr(t, err, core.ErrInvalid)
}

// Parsers quote what they do not understand. In a URL with a raw special character they would quote the password.
func TestOpen_NeverShowsThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://app:s3cr%t@db:6379/0", "redis://app:12/s3cr@db:6379/0", "redis://app:s3cr#t@db", "redis://app:s3cr?t@db/0",
		"redis://app:s3cr@db:6379/zero", "redis://app:s3cr@db:port", "app:s3cr@db:6379", "http://app:s3cr@db",
	} {
		_, err := core.Open(url)
		locktest.WantErr(t, err, core.ErrInvalid)
		if err != nil && (strings.Contains(err.Error(), "s3cr") || strings.Contains(err.Error(), "app")) {
			t.Errorf("%q: %v", url, err)
		}
	}
	_, err := core.Open("redis://app:s3cr@db:6379/zero")
	if err == nil || !strings.Contains(err.Error(), "invalid database number") {
		t.Errorf("got %v, want the fault without the password", err)
	}
}

// Two clients that the randomness of one moment created, as in two processes that were restored from one snapshot of a
// running machine, have one id. They are two holders, because the numbers of their fields are drawn later.
//
//nolint:paralleltest // the seed of crypto/rand is global
func TestClient_RestoredTwice(t *testing.T) {
	nonReentrant := func(clients []*core.Client, key string) core.Lock { return clients[0].NonReentrantLock(key) }
	for _, kind := range append(locktest.KindsWithHolders(), locktest.Kind{
		Name: "non-reentrant", Nodes: 1, Lock: nonReentrant, Rival: nonReentrant,
	}) {
		t.Run(kind.Name, func(t *testing.T) {
			locktest.BubbleOf(t, kind.Nodes, func(t *testing.T, servers []*locktest.Redis) {
				restore := func() []*core.Client {
					cryptotest.SetGlobalRandom(t, 1)
					return locktest.BehindEach(t, servers)
				}
				one, two := restore(), restore()
				locktest.WantSame(t, "id", one[0].ID(), two[0].ID())

				cryptotest.SetGlobalRandom(t, 2)
				_, hold := locktest.MustAcquire(t, t.Context(), kind.Lock(one, "k"))
				cryptotest.SetGlobalRandom(t, 3)
				_, other, err := kind.Lock(two, "k").Acquire(t.Context(), core.WaitTime(0))
				if kind.Name != "read" {
					locktest.WantErr(t, err, core.ErrNotAcquired)
				}
				locktest.WantSame(t, "both have the lock", err == nil, kind.Name == "read")
				locktest.MustRelease(t, hold)
				_, rival, err := kind.Rival(two, "k").Acquire(t.Context(), core.WaitTime(0))
				locktest.WantSame(t, "the lock is free", err == nil, kind.Name != "read")
				for _, left := range []*core.Hold{other, rival} {
					if left != nil {
						locktest.MustRelease(t, left)
					}
				}
			})
		})
	}
}
