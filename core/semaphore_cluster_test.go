package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Semaphores and latches in a Cluster, also while their slot is on its way to another node.
func TestCluster_Semaphores(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := clusterLocks(t, cluster)
	for _, name := range []string{"pool", "order:{42}:pool"} {
		lifeOfAPermit(t, locks, name)
		pool := locks.Semaphore(name, 2)
		_, hold := acquired(t, t.Context(), pool.Lock)
		must(t, pool.ReleasePermit(t.Context(), hold.Field()))
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		s := locks.PlainSemaphore(name + ":plain")
		_, err := s.TrySetPermits(t.Context(), 1)
		must(t, err)
		must(t, s.Acquire(t.Context(), 1))
		got := make(chan error, 1)
		go func() { got <- s.Acquire(context.Background(), 1) }()
		must(t, s.Release(t.Context(), 1))
		must(t, <-got)
	}
	latch := locks.CountDownLatch("latch")
	_, err := latch.TrySetCount(t.Context(), 1)
	must(t, err)
	opened := make(chan error, 1)
	go func() { opened <- locks.CountDownLatch("latch").Await(context.Background()) }()
	waiters(t, locks, 1)
	must(t, latch.CountDown(t.Context()))
	must(t, <-opened)
	_, err = locks.CountDownLatch("{a}b").TrySetCount(t.Context(), 1)
	wantErr(t, err, core.ErrInvalid)

	const key = "moving"
	ctx, hold := acquired(t, t.Context(), locks.Semaphore(key, 2).Lock, core.LeaseTime(time.Minute))
	move := cluster.BeginMove(key)
	must(t, hold.Refresh(t.Context(), 2*time.Minute))
	lifeOfAPermit(t, locks, key)
	move.Keys("{" + key + "}:timeout")
	must(t, hold.Refresh(t.Context(), time.Minute)) // the count is on the other node still
	wantAlive(t, ctx)
	done := releasing(hold)
	move.End()
	must(t, <-done)
	wantSame(t, "free", move.To.Client().Get(t.Context(), key).Val(), "2")
}

func lifeOfAPermit(t *testing.T, locks *core.Client, name string) {
	t.Helper()
	pool := locks.Semaphore(name, 2)
	_, hold := acquired(t, t.Context(), pool.Lock)
	must(t, hold.Refresh(t.Context(), time.Minute))
	state, err := pool.State(t.Context())
	must(t, err)
	if state.Holders[hold.Field()] != 1 {
		t.Errorf("got %+v, want the hold", state)
	}
	released(t, hold)
}

// A permit whose holder has died comes back also while the slot moves, where its set of leases cannot
// be made anew before the slot has moved.
func TestCluster_PermitOfTheDeadWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := clusterLocks(t, cluster)
	pool := locks.Semaphore("pool", 1)
	ctx, _ := acquired(t, t.Context(), pool.Lock, core.LeaseTime(20*time.Millisecond))
	awaitEnd(t, ctx)
	move := cluster.BeginMove("pool")
	before := move.From.Client().ZCard(t.Context(), "{pool}:timeout").Val()
	pending := acquiring(t.Context(), pool.Lock)
	eventually(t, "an attempt", func() bool {
		return len(pending) > 0 || move.From.Client().ZCard(t.Context(), "{pool}:timeout").Val() < before
	})
	move.End()
	released(t, got(t, pending).hold)
	wantGot(t, "free", 1)(pool.Available(t.Context()))
}
