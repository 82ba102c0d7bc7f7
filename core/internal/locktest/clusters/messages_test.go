package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestCluster_ShardedSubscriptionsComeBack kills the subscription connection of a client that waits for keys of one
// master in different slots. The client subscribes to all of them again, and the message of a release wakes each
// waiter.
func TestCluster_ShardedSubscriptionsComeBack(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	cluster.NeedSharded(t)
	node := cluster.Masters[0]
	direct := node.Client()
	keys := locktest.KeysOn(cluster, node, 3)
	holder, waiter := locktest.ClusterClient(t, cluster), locktest.ClusterClient(t, cluster)
	holds := make(map[string]*core.Hold)
	got := make(map[string]chan error)
	for _, key := range keys {
		_, hold, err := holder.Lock(key).Acquire(t.Context())
		locktest.Must(t, err)
		done := make(chan error, 1)
		holds[key], got[key] = hold, done
		go func() {
			done <- waiter.Lock(key).Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		}()
	}
	subscribed := func() bool {
		for _, key := range keys {
			channel := "redisson_lock__channel:{" + key + "}"
			if direct.PubSubShardNumSub(t.Context(), channel).Val()[channel] == 0 {
				return false
			}
		}
		return true
	}
	locktest.Eventually(t, "all channels to be subscribed", subscribed)
	locktest.Must(t, direct.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	locktest.Eventually(t, "all channels to be subscribed again", subscribed)
	for _, key := range keys {
		locktest.Must(t, holds[key].Release(t.Context()))
		locktest.Must(t, <-got[key])
	}
}
