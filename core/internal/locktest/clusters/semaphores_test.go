package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Semaphores and latches work in a Cluster, even while their slot moves to another node.
func TestCluster_Semaphores(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.ClusterClient(t, cluster)
	for _, name := range []string{"pool", "order:{42}:pool"} {
		lifeOfAPermit(t, locks, name)
		pool := locks.Semaphore(name, 2)
		_, hold := locktest.MustAcquire(t, t.Context(), pool.Lock)
		locktest.Must(t, pool.ReleasePermit(t.Context(), hold.Field()))
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		s := locks.PlainSemaphore(name + ":plain")
		_, err := s.TrySetPermits(t.Context(), 1)
		locktest.Must(t, err)
		locktest.Must(t, s.Acquire(t.Context(), 1))
		got := locktest.Go(func() error { return s.Acquire(context.Background(), 1) })
		locktest.Must(t, s.Release(t.Context(), 1))
		locktest.Must(t, <-got)
	}
	latch := locks.CountDownLatch("latch")
	_, err := latch.TrySetCount(t.Context(), 1)
	locktest.Must(t, err)
	opened := locktest.Go(func() error { return locks.CountDownLatch("latch").Await(context.Background()) })
	locktest.AwaitWaiters(t, locks, 1)
	locktest.Must(t, latch.CountDown(t.Context()))
	locktest.Must(t, <-opened)
	_, err = locks.CountDownLatch("{a}b").TrySetCount(t.Context(), 1)
	locktest.WantErr(t, err, core.ErrInvalid)

	const key = "moving"
	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Semaphore(key, 2).Lock, core.LeaseTime(time.Minute))
	move := cluster.BeginMove(key)
	locktest.Must(t, hold.Refresh(t.Context(), 2*time.Minute))
	lifeOfAPermit(t, locks, key)
	move.Keys("{" + key + "}:timeout")
	locktest.Must(t, hold.Refresh(t.Context(), time.Minute)) // the count is still on the other node
	locktest.WantAlive(t, ctx)
	done := locktest.GoRelease(hold)
	move.End()
	locktest.Must(t, <-done)
	locktest.WantSame(t, "free", move.To.Client().Get(t.Context(), key).Val(), "2")
}

func lifeOfAPermit(t *testing.T, locks *core.Client, name string) {
	t.Helper()
	pool := locks.Semaphore(name, 2)
	_, hold := locktest.MustAcquire(t, t.Context(), pool.Lock)
	locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
	state, err := pool.State(t.Context())
	locktest.Must(t, err)
	if state.Holders[hold.Field()] != 1 {
		t.Errorf("got %+v, want the hold", state)
	}
	locktest.MustRelease(t, hold)
}

// A permit whose holder has died becomes free even while the slot moves. The set of leases cannot be created again
// before the end of the move.
func TestCluster_PermitOfADeadHolderWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.ClusterClient(t, cluster)
	pool := locks.Semaphore("pool", 1)
	ctx, _ := locktest.MustAcquire(t, t.Context(), pool.Lock, core.LeaseTime(20*time.Millisecond))
	locktest.AwaitEnd(t, ctx)
	move := cluster.BeginMove("pool")
	before := move.From.Client().ZCard(t.Context(), "{pool}:timeout").Val()
	pending := locktest.GoAcquire(t.Context(), pool.Lock)
	locktest.Eventually(t, "an attempt", func() bool {
		return len(pending) > 0 || move.From.Client().ZCard(t.Context(), "{pool}:timeout").Val() < before
	})
	move.End()
	locktest.MustRelease(t, locktest.Got(t, pending).Hold)
	locktest.WantGot(t, "free", 1)(pool.Available(t.Context()))
}
