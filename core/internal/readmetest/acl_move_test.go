package readmetest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// The rights for a Cluster suffice while a slot moves, too.
func TestReadme_ACLSufficesWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	for _, m := range cluster.Masters {
		setUser(t, m.Client(), "mover", inCluster)
	}
	locks := openLocks(t, cluster.Client(func(o *redis.ClusterOptions) {
		o.Username, o.Password, o.DisableIdentity = "mover", "secret", true
	}))
	ctx, hold, err := locks.Lock("moving").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster.BeginMove("shop:moving").Keys("shop:moving")
	ok(t, hold.Refresh(ctx, time.Minute))
	ok(t, hold.Release(ctx))
	for _, m := range cluster.Masters {
		wantNothingRefused(t, m.Client(), "mover")
	}
}
