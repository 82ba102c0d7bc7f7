package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// keysOf returns n lock names for every master of a cluster.
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

// TestCluster_DeadNodeDelaysNoOther stops one master of a Cluster while several clients have holds on every master.
// Holds on the dead master are lost in time, and acquisitions there fail soon. On the other masters, holds are renewed
// in time for several leases, and acquisitions succeed. When the master is back, its locks can be acquired again.
func TestCluster_DeadNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	const perNode = 5
	watchdog, timeout := locktest.Unhurried(3*time.Second), time.Second
	cluster := redisserver.StartCluster(t)
	for _, m := range cluster.Masters { // so that the other masters go on without the stopped master
		locktest.Must(t, m.Client().ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	dead := cluster.Masters[1]
	keys := keysOf(t, cluster, perNode)
	elsewhere := &renewalTimes{not: keys[dead]}
	clients := make([]*core.Client, perNode)
	for i := range clients {
		clients[i] = locktest.NewClient(t, cluster.Client(), core.WithWatchdog(watchdog), core.WithBackendTimeout(timeout), core.WithObserver(elsewhere.observer()))
	}
	locks := clients[0]
	type one struct {
		ctx  context.Context //nolint:containedctx // a hold
		hold *core.Hold
	}
	holds := make(map[*redisserver.Server][]one)
	for m, keys := range keys {
		for i, key := range keys {
			ctx, hold := locktest.MustAcquire(t, t.Context(), clients[i].Lock(key))
			holds[m] = append(holds[m], one{ctx, hold})
		}
	}
	stopped := time.Now()
	dead.Stop()
	for _, h := range holds[dead] {
		locktest.AwaitEnd(t, h.ctx)
		locktest.WantEnded(t, h.ctx, core.ErrLost)
	}
	locktest.WantAtMost(t, "the loss", time.Since(stopped), watchdog)
	start := time.Now()
	_, _, err := locks.Lock(holds[dead][0].hold.Key()).Acquire(t.Context(), core.WaitTime(time.Minute))
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	locktest.WantAtMost(t, "the acquire on the dead node", time.Since(start), timeout)
	alive := func() {
		t.Helper()
		for m, list := range holds {
			for _, h := range list {
				if m != dead && h.ctx.Err() != nil {
					t.Errorf("a lock on another node was lost after %s: %v", time.Since(stopped), context.Cause(h.ctx))
				}
			}
		}
	}
	for time.Since(stopped) < 3*watchdog {
		alive()
		time.Sleep(10 * time.Millisecond) // the time in which nothing must happen
	}
	renewals := 2 * perNode * 8 // three leases, renewed every third
	if !locktest.IsQuiet() {
		renewals = 2 * perNode * 2 // the fewest that keep the holds
	}
	elsewhere.wantInTime(t, watchdog/10, renewals)
	dead.Continue()
	back := func() bool {
		_, hold, err := locks.Lock(holds[dead][0].hold.Key()).Acquire(t.Context(), core.WaitTime(time.Second))
		return err == nil && hold.Release(t.Context()) == nil
	}
	locktest.Eventually(t, "the dead node to be used again", back)
	alive()
	for m, list := range holds {
		for _, h := range list {
			if err := h.hold.Release(t.Context()); (err == nil) == (m == dead) {
				t.Errorf("release, on the dead node %v: %v", m == dead, err)
			}
		}
	}
}

// renewalTimes records how late renewals are, except for some keys.
type renewalTimes struct {
	not []string

	mu   sync.Mutex
	late []time.Duration
}

func (r *renewalTimes) observer() *core.Observer { return &core.Observer{Renewal: r.observeRenewal} }

func (r *renewalTimes) observeRenewal(_ context.Context, renewal core.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.not, renewal.Key) {
		r.late = append(r.late, renewal.Late)
	}
}

// wantInTime checks that n renewals were in time. The bound allows for a busy machine and is much less than the time
// limit of a renewal.
func (r *renewalTimes) wantInTime(t *testing.T, bound time.Duration, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.late) < n {
		t.Fatalf("%d renewals, want %d", len(r.late), n)
	}
	if worst := slices.Max(r.late); worst > locktest.Measured(bound) {
		t.Errorf("renewals were up to %s late, want at most %s", worst, bound)
	}
}

// TestCluster_Failover kills the master of a Sentinel under holders and waiters of all kinds.
func TestCluster_Failover(t *testing.T) {
	t.Parallel()
	locktest.Parallel(t, "lease shorter than the failover", func(t *testing.T) {
		const watchdog = 2 * time.Second
		f := newFailover(t, core.WithWatchdog(watchdog), core.WithBackendTimeout(500*time.Millisecond))
		f.take()
		f.wait()
		f.DownAfter(time.Minute) // the replica takes over after the end of the leases
		killed := time.Now()
		f.Master.Kill()
		f.wantLost(killed, watchdog)
		f.DownAfter(300 * time.Millisecond)
		f.AwaitFailover()
		f.wantGot()
		f.liveness()
	})
	locktest.Parallel(t, "lease longer than the failover", func(t *testing.T) {
		f := newFailover(t, core.WithWatchdog(12*time.Second), core.WithBackendTimeout(500*time.Millisecond))
		f.take()
		f.wait()
		f.Master.Kill()
		f.AwaitFailover()
		f.renewed.each(t, f.held, open)
		f.wantGot()
		f.liveness()
	})
	locktest.Parallel(t, "lock not on the new master", func(t *testing.T) {
		const watchdog = 6 * time.Second
		f := newFailover(t, core.WithWatchdog(watchdog), core.WithBackendTimeout(500*time.Millisecond))
		f.take()
		f.Master.Kill()
		f.AwaitFailover()
		locktest.Must(t, f.Replica.Client().FlushAll(t.Context()).Err()) // as if no write had arrived there
		f.wantLost(time.Now(), watchdog/3)
		f.liveness()
	})
}

// failover is a failover under locks of all kinds.
type failover struct {
	*redisserver.Sentinel
	t       *testing.T
	locks   *core.Client
	renewed *renewedKeys
	held    []*movingLock
}

func newFailover(t *testing.T, opts ...core.Option) *failover {
	t.Helper()
	f := &failover{t: t, Sentinel: redisserver.StartSentinel(t), renewed: &renewedKeys{}}
	f.locks = locktest.NewClient(t, f.Client(), append(opts, core.WithObserver(f.renewed.observer()))...)
	locktest.Warm(t, f.locks)
	for _, kind := range locktest.KindsOnOneServer() {
		f.held = append(f.held, &movingLock{Kind: kind, t: t, key: kind.Name, got: make(chan error, 1)})
	}
	return f
}

// take takes all locks and waits until the replica has them.
func (f *failover) take() {
	f.t.Helper()
	for _, m := range f.held {
		m.take(f.locks)
	}
	keys := f.Master.Client().DBSize(f.t.Context()).Val()
	direct := f.Replica.Client()
	locktest.Eventually(f.t, "the replica has all", func() bool { return direct.DBSize(f.t.Context()).Val() == keys })
}

// wait starts a waiter for each lock, which goes on while Redis is down.
func (f *failover) wait() {
	f.t.Helper()
	for _, m := range f.held {
		go func() { m.got <- f.retry(func() error { return m.waited(f.locks) }) }()
	}
	locktest.AwaitWaiters(f.t, f.locks, len(f.held))
}

// wantLost checks that the contexts of all holds end with ErrLost, and releases the holds.
func (f *failover) wantLost(since time.Time, bound time.Duration) {
	f.t.Helper()
	for _, m := range f.held {
		m.given.Store(true)
		if m.has.Hold == nil {
			continue
		}
		locktest.AwaitEnd(f.t, m.has.Ctx)
		locktest.WantAtMost(f.t, "the loss of "+m.Name, time.Since(since), bound)
		locktest.WantEnded(f.t, m.has.Ctx, core.ErrLost)
		locktest.WantErr(f.t, m.has.Hold.Release(f.t.Context()), core.ErrLost)
	}
}

// wantGot releases the holds that are not lost, and checks that the waiters get the locks. If Redis is down, a release
// goes on in the background, or the lease ends.
func (f *failover) wantGot() {
	f.t.Helper()
	for _, m := range f.held {
		m.given.Store(true)
		if m.has.Hold == nil || m.has.Ctx.Err() == nil {
			locktest.Must(f.t, unlessAway(m.has.GiveBack()))
		}
	}
	for _, m := range f.held {
		m.await("the acquisition", m.got)
	}
}

func unlessAway(err error) error {
	if errors.Is(err, core.ErrUnavailable) {
		return nil
	}
	return err
}

// retry repeats a call while Redis is down.
func (f *failover) retry(do func() error) (err error) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if err = do(); !errors.Is(err, core.ErrUnavailable) {
			return err
		}
		time.Sleep(20 * time.Millisecond) // as a caller would do
	}
	return err
}

// liveness checks that this client and a new client can use all locks.
func (f *failover) liveness() {
	f.t.Helper()
	for _, locks := range []*core.Client{f.locks, locktest.NewClient(f.t, f.Client(), locktest.Patient)} {
		for _, m := range f.held {
			locktest.Must(f.t, f.retry(func() error {
				has, err := m.Take(f.t.Context(), locks, m.key+"-again")
				if err != nil {
					return err
				}
				return unlessAway(has.GiveBack())
			}))
		}
	}
}
