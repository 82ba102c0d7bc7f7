package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/redis/go-redis/v9"
)

// keysOf gives n lock names for every master of a cluster.
func keysOf(t *testing.T, cluster *redisserver.Cluster, n int) map[*redisserver.Server][]string {
	t.Helper()
	keys := make(map[*redisserver.Server][]string)
	for i := 0; len(keys[cluster.Masters[0]]) < n || len(keys[cluster.Masters[1]]) < n || len(keys[cluster.Masters[2]]) < n; i++ {
		key := fmt.Sprintf("k%d", i)
		m := cluster.Master(key)
		if len(keys[m]) < n {
			keys[m] = append(keys[m], key)
		}
	}
	return keys
}

// TestFault_DeadNode_DelaysNoOther stops one master of a Cluster under holds of several
// clients, each of which holds something on every master. Those on the other masters
// are renewed in time, for several leases; those on the dead one are lost in time; an
// acquire there is known to fail soon, and elsewhere it works. When the master is back,
// so are its locks.
func TestFault_DeadNode_DelaysNoOther(t *testing.T) {
	t.Parallel()
	const (
		watchdog = 3 * time.Second
		timeout  = time.Second
		perNode  = 5
	)
	cluster := redisserver.StartCluster(t)
	for _, m := range cluster.Masters { // so that the others serve on without it
		must(t, m.Client().ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	dead := cluster.Masters[1]
	keys := keysOf(t, cluster, perNode)
	elsewhere := &renewalTimes{not: keys[dead]}
	clients := make([]*core.Client, perNode)
	for i := range clients {
		clients[i] = locksOn(t, cluster.Client(), core.WithWatchdog(watchdog), core.WithBackendTimeout(timeout), core.WithObserver(elsewhere))
	}
	locks := clients[0]
	type one struct {
		ctx  context.Context //nolint:containedctx // a hold
		hold *core.Hold
	}
	holds := make(map[*redisserver.Server][]one)
	for m, keys := range keys {
		for i, key := range keys {
			ctx, hold := acquired(t, t.Context(), clients[i].Lock(key))
			holds[m] = append(holds[m], one{ctx, hold})
		}
	}
	stopped := time.Now()
	dead.Stop()
	for _, h := range holds[dead] {
		awaitEnd(t, h.ctx)
		wantEnded(t, h.ctx, core.ErrLost)
	}
	wantAtMost(t, "the loss", time.Since(stopped), watchdog)
	start := time.Now()
	_, _, err := locks.Lock(holds[dead][0].hold.Key()).Acquire(t.Context(), core.WaitTime(time.Minute))
	wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	wantAtMost(t, "knowing that the node is dead", time.Since(start), timeout)
	alive := func() {
		t.Helper()
		for m, list := range holds {
			for _, h := range list {
				if m != dead && h.ctx.Err() != nil {
					t.Errorf("lost on another node after %s: %v", time.Since(stopped), context.Cause(h.ctx))
				}
			}
		}
	}
	for time.Since(stopped) < 3*watchdog {
		alive()
		time.Sleep(10 * time.Millisecond) // the time in which nothing must happen
	}
	elsewhere.wantInTime(t, watchdog/10, 2*perNode*8) // three leases, renewed every third
	dead.Continue()
	back := func() bool {
		_, hold, err := locks.Lock(holds[dead][0].hold.Key()).Acquire(t.Context(), core.WaitTime(time.Second))
		return err == nil && hold.Release(t.Context()) == nil
	}
	eventually(t, "the dead node to be used again", back)
	alive()
	for m, list := range holds {
		for _, h := range list {
			if err := h.hold.Release(t.Context()); (err == nil) == (m == dead) {
				t.Errorf("release, on the dead node %v: %v", m == dead, err)
			}
		}
	}
}

// renewalTimes records how late the renewals of all keys but some are.
type renewalTimes struct {
	not []string

	mu   sync.Mutex
	late []time.Duration
}

func (r *renewalTimes) ObserveRenewal(_ context.Context, renewal core.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.not, renewal.Key) {
		r.late = append(r.late, renewal.Late)
	}
}

// wantInTime wants so many renewals, none of them late but for what a busy machine
// adds: much less than the time limit of a renewal.
func (r *renewalTimes) wantInTime(t *testing.T, bound time.Duration, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.late) < n {
		t.Fatalf("%d renewals, want %d", len(r.late), n)
	}
	if worst := slices.Max(r.late); worst > bound {
		t.Errorf("renewed up to %s late", worst)
	}
}

// TestFault_Failover kills the master of a Sentinel under a holder and a waiter.
func TestFault_Failover(t *testing.T) {
	t.Parallel()
	t.Run("lease shorter than the failover", func(t *testing.T) {
		t.Parallel()
		f := newFailover(t, core.WithWatchdog(400*time.Millisecond), core.WithBackendTimeout(200*time.Millisecond))
		ctx, hold := acquired(t, t.Context(), f.locks.Lock("k"))
		killed := time.Now()
		f.Master.Kill()
		awaitEnd(t, ctx)
		wantAtMost(t, "the loss", time.Since(killed), 400*time.Millisecond)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		f.AwaitFailover()
		f.liveness("k")
	})
	t.Run("lease longer than the failover", func(t *testing.T) {
		t.Parallel()
		f := newFailover(t, core.WithWatchdog(12*time.Second), core.WithBackendTimeout(500*time.Millisecond))
		ctx, hold := acquired(t, t.Context(), f.locks.Lock("k"))
		direct := f.Replica.Client()
		eventually(t, "the lock on the replica", func() bool { return direct.HExists(t.Context(), "k", hold.Field()).Val() })
		got := make(chan outcome, 1)
		go func() { got <- f.persistent("k") }()
		waiters(t, f.locks, 1)
		f.Master.Kill()
		f.AwaitFailover()
		eventually(t, "a renewal on the new master", func() bool {
			return ctx.Err() != nil || direct.PTTL(t.Context(), "k").Val() > 11*time.Second
		})
		wantAlive(t, ctx)
		if !direct.HExists(t.Context(), "k", hold.Field()).Val() {
			t.Error("the holder is not on the new master, and does not know")
		}
		_ = hold.Release(t.Context())
		o := <-got
		must(t, o.err)
		released(t, o.hold)
		f.liveness("k")
	})
	t.Run("lock not on the new master", func(t *testing.T) {
		t.Parallel()
		const watchdog = 6 * time.Second
		f := newFailover(t, core.WithWatchdog(watchdog), core.WithBackendTimeout(500*time.Millisecond))
		ctx, hold := acquired(t, t.Context(), f.locks.Lock("k"))
		f.Master.Kill()
		f.AwaitFailover()
		must(t, f.Replica.Client().Del(t.Context(), "k").Err()) // as if it had never got there
		deleted := time.Now()
		awaitEnd(t, ctx)
		wantAtMost(t, "the loss", time.Since(deleted), watchdog/3)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		f.liveness("k")
	})
}

type failover struct {
	*redisserver.Sentinel
	t     *testing.T
	rdb   *redis.Client
	locks *core.Client
}

func newFailover(t *testing.T, opts ...core.Option) *failover {
	t.Helper()
	f := &failover{t: t, Sentinel: redisserver.StartSentinel(t)}
	f.rdb = f.Client()
	f.locks = locksOn(t, f.rdb, opts...)
	warm(t, f.locks)
	return f
}

// persistent acquires for as long as Redis is away.
func (f *failover) persistent(key string) (o outcome) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		o = <-acquiring(f.t.Context(), f.locks.Lock(key))
		if !errors.Is(o.err, core.ErrUnavailable) {
			return o
		}
		time.Sleep(20 * time.Millisecond) // as a caller would
	}
	return o
}

// liveness wants the lock to be usable by this client and by a new one.
func (f *failover) liveness(key string) {
	f.t.Helper()
	o := f.persistent(key)
	must(f.t, o.err)
	released(f.t, o.hold)
	other := locksOn(f.t, f.Client(), patient)
	must(f.t, other.Lock(key).Do(f.t.Context(), func(context.Context) error { return nil }, core.WaitTime(5*time.Second)))
}
