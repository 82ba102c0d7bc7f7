package clusters_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Each master of a Cluster has separate replicas.
func TestCluster_WaitsForTheReplicasOfTheMaster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	replica := cluster.AddReplica(cluster.Masters[0])
	locks := locktest.NewClient(t, cluster.Client(), core.WithReplicaAcks(core.AcksAll, 500*time.Millisecond))
	with, without := "", ""
	for i := 0; with == "" || without == ""; i++ {
		if key := "k" + strconv.Itoa(i); cluster.Master(key) == cluster.Masters[0] {
			with = key
		} else {
			without = key
		}
	}
	do := func(key string) error {
		return locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil })
	}
	locktest.Eventually(t, "the replica acknowledges", func() bool { return do(with) == nil })
	locktest.Must(t, do(without))
	replica.Stop()
	locktest.WantShort(t, do(with), 1, 0)
	locktest.Must(t, do(without))
	replica.Continue()
	locktest.Eventually(t, "the replica is back", func() bool { return do(with) == nil })
}

// During the move of a slot and after it, the client waits for the replicas of the node that has the key.
func TestCluster_ReplicasWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	key := "moving"
	move := cluster.PlanMove(key)
	replica := cluster.AddReplica(move.To)
	watchdog := locktest.Unhurried(5 * time.Second)
	seen := &locktest.Renewals{}
	locks := locktest.NewClient(t, cluster.Client(), core.WithReplicaAcks(core.Acks(1), watchdog/10), core.WithWatchdog(watchdog), core.WithObserver(seen.Observer()))
	patient := locktest.NewClient(t, cluster.Client(), core.WithReplicaAcks(core.Acks(1), 3*time.Second), locktest.Patient)
	_, _, err := locks.Lock(key).Acquire(t.Context())
	locktest.WantShort(t, err, 1, 0)

	move.Open()
	locktest.Eventually(t, "a lock on the node to which the slot moves", func() bool {
		return locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
	lifeOfALock(t, patient, key)
	ctx, hold := locktest.AcquireAcknowledged(t, locks.Lock(key))
	before := seen.Good()
	locktest.Eventually(t, "renewals on the node to which the slot moves", func() bool { return seen.Good() > before })
	locktest.WantAlive(t, ctx)
	// The replica has no other key. Redis 8.6 does not list the keys of a slot that the master does not own yet.
	if keys := replica.Client().Info(t.Context(), "keyspace").Val(); !strings.Contains(keys, "db0:keys=1,") {
		t.Errorf("the replica has %q, want one key", keys)
	}

	move.End()
	before = seen.Good()
	locktest.Eventually(t, "renewals when the slot has moved", func() bool { return seen.Good() > before })
	locktest.WantAlive(t, ctx)
	locktest.MustRelease(t, hold)
	lifeOfALock(t, patient, key)
	slow := func(err error) bool { return !locktest.IsQuiet() && errors.Is(err, context.DeadlineExceeded) }
	if err := seen.Failure(); err != nil && !slow(err) && !strings.Contains(err.Error(), "MOVED") && !strings.Contains(err.Error(), "ASK") {
		t.Errorf("a renewal failed: %v", err)
	}
}
