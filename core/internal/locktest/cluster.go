package locktest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Cluster is a Redis Cluster of three masters.
type Cluster struct {
	*redisserver.Cluster

	Redis *redis.ClusterClient // reads the keys
}

// NewCluster starts a Cluster.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	return ClusterOf(redisserver.StartCluster(t))
}

// ClusterOf returns a Cluster of servers that are already running.
func ClusterOf(c *redisserver.Cluster) *Cluster {
	return &Cluster{Cluster: c, Redis: c.Client()}
}

// Locks returns a new Patient lock client, which stands for a separate process. Holds that are left at the end of the
// test stay in Redis.
func (c *Cluster) Locks(t *testing.T, opts ...core.Option) *core.Client {
	t.Helper()
	return NewClient(t, c.Client(), append([]core.Option{Patient}, opts...)...)
}

// OnMaster returns a client of the master of a key.
func (c *Cluster) OnMaster(t *testing.T, key string) *redis.Client {
	t.Helper()
	node, err := c.Redis.MasterForKey(context.Background(), key)
	Must(t, err)
	return node
}

// WantGone checks that keys do not exist.
func (c *Cluster) WantGone(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if c.Redis.Exists(context.Background(), key).Val() != 0 {
			t.Errorf("%s is still there", key)
		}
	}
}

// ClusterClient returns a Patient lock client whose holds have to be released when the test ends.
func ClusterClient(t *testing.T, cluster *redisserver.Cluster) *core.Client {
	t.Helper()
	locks, err := core.New(cluster.Client(), Patient)
	Must(t, err)
	t.Cleanup(func() { MustClose(t, locks) })
	return locks
}

// KeysOn returns n lock names in different slots of one node.
func KeysOn(cluster *redisserver.Cluster, node *redisserver.Server, n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprintf("key-%d", i); cluster.Master(key) == node {
			keys = append(keys, key)
		}
	}
	return keys
}
