package clusters_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// selecting makes the connections of a client of a Cluster use a database.
func selecting(database int) func(*redis.ClusterOptions) {
	return func(o *redis.ClusterOptions) {
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Select(ctx, database).Err() }
	}
}

// A Cluster of Valkey 9 has several databases. Clients of one database share their locks, and a lock of another database
// with the same name is another lock.
func TestCluster_Databases(t *testing.T) {
	t.Parallel()
	const database = 2
	cluster := redisserver.NeedValkey(t).StartClusterWith(t, 3, "--cluster-databases", "4")
	in := func() *core.Client {
		return locktest.NewClient(t, cluster.Client(selecting(database)), locktest.Patient)
	}
	one, two, zero := in(), in(), locktest.NewClient(t, cluster.Client(), locktest.Patient)

	locktest.Parallel(t, "names", func(t *testing.T) {
		w, err := one.Wire(t.Context())
		locktest.Must(t, err)
		locktest.WantSame(t, "database", w.Database, database)
		for _, text := range []string{"database 2 of a Cluster", "useClusterServers with database 2"} {
			if !strings.Contains(w.String(), text) {
				t.Errorf("got %q, want %q in it", w, text)
			}
		}
		if !strings.HasSuffix(one.Address(), ", database 2") {
			t.Errorf("address: got %q", one.Address())
		}
		w, err = zero.Wire(t.Context())
		locktest.Must(t, err)
		if w.Database != 0 || strings.Contains(w.String()+zero.Address(), "database") {
			t.Errorf("without a database: got %s, %s", w, zero.Address())
		}
	})
	locktest.Parallel(t, "preflight", func(t *testing.T) {
		report, err := one.Preflight(t.Context(), core.KindReentrant, core.KindFair)
		locktest.Must(t, err)
		locktest.WantOK(t, report.Err())
	})
	locktest.Parallel(t, "exclude", func(t *testing.T) {
		_, hold := locktest.MustAcquire(t, t.Context(), one.Lock("k"))
		_, _, err := two.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		_, apart := locktest.MustAcquire(t, t.Context(), zero.Lock("k"), core.WaitTime(0))
		for _, locks := range []*core.Client{two, zero} {
			page, err := locks.Locks(t.Context(), core.LockQuery{Prefix: "k"})
			locktest.Must(t, err)
			if len(page.Locks) != 1 || page.Locks[0].Key != "k" {
				t.Errorf("the list of %s: got %+v, want one lock", locks.Address(), page.Locks)
			}
		}
		waiting := locktest.GoAcquire(t.Context(), two.Lock("k"))
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
		locktest.MustRelease(t, apart)
	})
	// The page "Migrating" warns of this: a message does not have a database.
	locktest.Parallel(t, "messages reach all databases", func(t *testing.T) {
		sub := cluster.Client().SSubscribe(t.Context(), locktest.ChannelOf("m"))
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		locktest.Must(t, err)
		_, hold := locktest.MustAcquire(t, t.Context(), one.Lock("m"))
		locktest.MustRelease(t, hold)
		m, err := sub.ReceiveMessage(t.Context())
		locktest.Must(t, err)
		locktest.WantSame(t, "message", m.Payload, "0")
	})
	locktest.Parallel(t, "a slot moves", func(t *testing.T) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), one.Lock("moved"))
		waiting := locktest.GoAcquire(t.Context(), two.Lock("moved"))
		move := cluster.BeginMove("moved")
		from := move.From.Client(func(o *redis.Options) { o.DB = database })
		host, port, _ := net.SplitHostPort(move.To.Addr())
		locktest.Must(t, from.Migrate(t.Context(), host, port, "moved", database, 10*time.Second).Err())
		locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
		move.End()
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
	})
}

// A database that a Cluster does not have makes an acquisition fail at once, with the reply of the server.
func TestCluster_DatabaseThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start func(t *testing.T) *redisserver.Cluster
		says  string
	}{
		"Redis": {func(t *testing.T) *redisserver.Cluster { t.Helper(); return redisserver.StartCluster(t, 1) }, "SELECT is not allowed in cluster mode"},
		"Valkey": {func(t *testing.T) *redisserver.Cluster {
			t.Helper()
			return redisserver.NeedValkey(t).StartCluster(t, 1)
		}, "DB index is out of range"},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			locks := locktest.NewClient(t, c.start(t).Client(selecting(9)), locktest.Patient)
			start := time.Now()
			_, _, err := locks.Lock("k").Acquire(t.Context())
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
			locktest.WantAtMost(t, "the acquisition", time.Since(start), 10*time.Second)
		})
	}
}
