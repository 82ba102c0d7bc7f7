package interop_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// withDatabases is the first version of Redisson that selects a database of a Cluster.
var withDatabases = release{4, 0}

// databasesApart lets both sides use database 3 of a Cluster of Valkey 9, where they exclude and wake each other. A
// client of Go in database 0 shares no lock with them.
func databasesApart(t *testing.T, s *site, valkey redisserver.Binary) {
	c := valkey.StartClusterWith(t, 3, "--cluster-databases", "4")
	inThree := c.Client(func(o *redis.ClusterOptions) {
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Select(ctx, 3).Err() }
	})
	java := s.jvm.Open(t, interop.Config{Mode: cluster, Addrs: c.Addrs(), Database: "3"})
	apart, k := goParty{newLocks(t, c.Client())}, kindOf("reentrant")
	k.waited = nil // the site is another Cluster
	for _, d := range bothWays(java, newLocks(t, inThree)) {
		t.Run(d.String(), func(t *testing.T) {
			name := unique("database")
			holder := take(t, d.holder, k, name)
			wantRefused(t, d.waiter, k, name)
			other, free := apart.try(t, k, name)
			if !free {
				t.Fatal("a client in database 0 is excluded")
			}
			other.release(t)
			waits := d.waiter.ask(t, k, name)
			d.waiter.awaitWaiter(t, s, k, name)
			released := holder.release(t)
			next := receive(t, waits, d.waiter.String())
			if took := next.at.Sub(released); took > wokenWithin {
				t.Errorf("waited %s after the release, want at most %s", took, wokenWithin)
			}
			next.release(t)
		})
	}
}
