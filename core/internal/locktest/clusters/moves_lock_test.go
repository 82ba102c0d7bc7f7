package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A slot moves to another node. Every operation follows a key that has moved already, and finds the slot after the
// move.
func TestCluster_SlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	key := "moving"
	locks := locktest.ClusterClient(t, cluster)
	locktest.Must(t, locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil })) // the client knows the slots
	move := cluster.BeginMove(key)
	lifeOfALock(t, locks, key)

	move.End()
	lifeOfALock(t, locks, key)
	if n := len(move.Arrived()); n != 0 {
		t.Error("the key is left on the node that has taken over")
	}
}

// lifeOfALock performs every operation on a held lock.
func lifeOfALock(t *testing.T, locks *core.Client, key string) {
	t.Helper()
	lock := locks.Lock(key)
	ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, inner := locktest.MustAcquire(t, ctx, lock)
	locktest.MustRelease(t, inner)
	locktest.Must(t, hold.Refresh(t.Context(), 2*time.Minute))
	state, err := lock.State(t.Context())
	locktest.Must(t, err)
	if state.Holders[hold.Field()] != 1 || state.TTL < time.Minute {
		t.Errorf("got %+v, want a hold for two minutes", state)
	}
	_, _, err = locks.Lock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.MustRelease(t, hold)
}
