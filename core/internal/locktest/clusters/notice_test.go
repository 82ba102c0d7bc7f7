package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A master announces only changes of keys that it has. The client listens on the master of each lock, also after the
// slot of a lock has moved.
func TestCluster_LossNotice(t *testing.T) {
	t.Parallel()
	c := locktest.NewCluster(t)
	locktest.Must(t, c.Redis.ForEachMaster(t.Context(), func(ctx context.Context, rdb *redis.Client) error {
		return rdb.ConfigSet(ctx, "notify-keyspace-events", "Kghzxe").Err()
	}))
	rdb := c.Client()
	locks := locktest.NewClient(t, rdb, locktest.Patient, core.WithLossNotice())
	awaitListener := func(on *redis.Client, key string) {
		t.Helper()
		channel := "__keyspace@0__:" + key
		locktest.Eventually(t, "the client listens for "+key, func() bool {
			return on.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
	}
	var holds []context.Context
	var keys []string
	for _, master := range c.Masters {
		key := locktest.KeysOn(c.Cluster, master, 1)[0]
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock(key), core.LeaseTime(time.Hour))
		holds, keys = append(holds, ctx), append(keys, key)
	}
	for i, master := range c.Masters {
		awaitListener(master.Client(), keys[i])
	}
	move := c.BeginMove(keys[0])
	move.End()
	rdb.ReloadState(t.Context()) // go-redis does so by itself after some seconds
	awaitListener(move.To.Client(), keys[0])
	c.Redis.ReloadState(t.Context())
	for i, key := range keys {
		locktest.WantAlive(t, holds[i])
		locktest.Must(t, c.Redis.Del(t.Context(), key).Err())
		locktest.AwaitEnd(t, holds[i])
		locktest.WantEnded(t, holds[i], core.ErrLost)
	}
}
