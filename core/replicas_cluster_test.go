package core_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Each master of a Cluster has replicas of its own.
func TestCluster_ReplicasAreThoseOfTheMaster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	replica := cluster.AddReplica(cluster.Masters[0])
	locks := locksOn(t, cluster.Client(), core.WithReplicaAcks(core.AcksAll, 500*time.Millisecond))
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
	eventually(t, "the replica acknowledges", func() bool { return do(with) == nil })
	must(t, do(without))
	replica.Stop()
	wantShort(t, do(with), 1, 0)
	must(t, do(without))
	replica.Continue()
	eventually(t, "the replica is back", func() bool { return do(with) == nil })
}

// While a slot is on its way, and when it has moved, what waits for the replicas goes to the
// node that has the key.
func TestCluster_AcknowledgedSlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	key := "moving"
	move := cluster.PlanMove(key)
	replica := cluster.AddReplica(move.To)
	watchdog := unhurried(5 * time.Second)
	seen := &renewals{}
	locks := locksOn(t, cluster.Client(), core.WithReplicaAcks(core.Acks(1), 400*time.Millisecond), core.WithWatchdog(watchdog), core.WithObserver(seen.observer()))
	_, _, err := locks.Lock(key).Acquire(t.Context())
	wantShort(t, err, 1, 0)

	move.Open()
	eventually(t, "a lock on the node to which the slot moves", func() bool {
		return locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
	lifeOfALock(t, locks, key)
	ctx, hold := acquired(t, t.Context(), locks.Lock(key))
	before := seen.good()
	eventually(t, "renewals on the node to which the slot moves", func() bool { return seen.good() > before })
	wantAlive(t, ctx)
	// It has no other key. Redis 8.6 does not list the keys of a slot that the master does not own yet.
	if keys := replica.Client().Info(t.Context(), "keyspace").Val(); !strings.Contains(keys, "db0:keys=1,") {
		t.Errorf("the replica has %q, want one key", keys)
	}

	move.End()
	before = seen.good()
	eventually(t, "renewals when the slot has moved", func() bool { return seen.good() > before })
	wantAlive(t, ctx)
	released(t, hold)
	lifeOfALock(t, locks, key)
	slow := func(err error) bool { return !isQuiet() && errors.Is(err, context.DeadlineExceeded) }
	if err := seen.failure(); err != nil && !slow(err) && !strings.Contains(err.Error(), "MOVED") && !strings.Contains(err.Error(), "ASK") {
		t.Errorf("a renewal failed: %v", err)
	}
}
