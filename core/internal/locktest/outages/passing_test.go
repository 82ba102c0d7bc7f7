package outages_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A server loads its data, as after a restart, for longer than the backend timeout. The lock does not count as taken.
// A caller that waits long enough gets the lock, and other callers fail.
func TestPassing_Loading(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	rdb := redisserver.Start(t).Client()
	locks := locktest.NewClient(t, rdb, core.WithBackendTimeout(timeout))
	locktest.Warm(t, locks)
	waits := locktest.NewClient(t, rdb, locktest.Patient) // a server that loads is slow
	load(t, rdb, locktest.Unhurried(5*time.Second))
	got := locktest.GoAcquire(t.Context(), waits.Lock("other"), core.WaitTime(time.Minute))
	for _, wait := range []time.Duration{0, 2 * timeout} {
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(wait))
		locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		if err == nil || !strings.Contains(err.Error(), "LOADING") {
			t.Errorf("wait %s: %v does not name the cause", wait, err)
		}
		locktest.WantAtMost(t, "the refusal", time.Since(start), max(wait, timeout))
	}
	locktest.Eventually(t, "loaded", func() bool { return rdb.ReplicaOf(t.Context(), "no", "one").Err() == nil })
	locktest.MustRelease(t, locktest.Got(t, got).Hold)
	locktest.Eventually(t, "an acquire after that", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// load returns a server load the data of another server slowly. It returns when the server loads.
func load(t *testing.T, rdb *redis.Client, takes time.Duration) {
	t.Helper()
	keys := takes / (25 * time.Millisecond) // the server answers between keys
	source := redisserver.Start(t)
	locktest.Must(t, source.Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	locktest.Must(t, source.Client().ConfigSet(t.Context(), "rdbcompression", "no").Err())
	_, err := source.Client().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range keys {
			p.Do(t.Context(), "set", rand.Text(), strings.Repeat("x", 4096))
		}
		return nil
	})
	locktest.Must(t, err)
	locktest.Must(t, rdb.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err()) // so that the server answers while it loads
	locktest.Must(t, rdb.ConfigSet(t.Context(), "key-load-delay", fmt.Sprint((takes/keys).Microseconds())).Err())
	host, port, err := net.SplitHostPort(source.Addr())
	locktest.Must(t, err)
	locktest.Must(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	locktest.Eventually(t, "loading", func() bool { return redis.IsLoadingError(rdb.Ping(t.Context()).Err()) })
}

// condition is a state in which a real Redis refuses all commands.
type condition struct {
	says       string
	begin, end func(t *testing.T, rdb *redis.Client)
}

func config(parameter, value string) func(t *testing.T, rdb *redis.Client) {
	return func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		locktest.Must(t, rdb.ConfigSet(context.Background(), parameter, value).Err())
	}
}

var passing = []condition{
	{"NOREPLICAS", config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0")},
	{"BUSY", func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		locktest.Must(t, rdb.ConfigSet(t.Context(), "busy-reply-threshold", "10").Err())
		go rdb.WithTimeout(time.Minute).Eval(context.Background(), "while true do end", nil)
		locktest.Eventually(t, "a script to run", func() bool { return redis.HasErrorPrefix(rdb.Ping(t.Context()).Err(), "BUSY") })
	}, func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		locktest.Must(t, rdb.ScriptKill(context.Background()).Err())
	}},
	{"MASTERDOWN", func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		locktest.Must(t, rdb.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err())
		locktest.Must(t, rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	}, func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		locktest.Must(t, rdb.ReplicaOf(context.Background(), "no", "one").Err())
	}},
}

// A Redis refuses all commands for much longer than the backend timeout. Callers that acquire or re-enter with a wait
// time wait until Redis serves again, and send few commands until then. Callers with WaitTime(0) fail at once with the
// cause. Refused commands leave nothing behind.
func TestPassing_IsWaitedOut(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	var cases []locktest.Subtest
	for _, c := range passing {
		cases = append(cases, locktest.Subtest{Name: c.says, Body: func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(core.WithBackendTimeout(timeout))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"))
			c.begin(t, r.Client)
			sent := r.Proxy.Watch(locktest.Scripts)

			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			wantPassing(t, "without waiting", err, c.says)
			if n := sent.Hits(); n < 1 || n > 3 { // more than one if the machine is too slow to answer in time
				t.Errorf("%d attempts without waiting, want one", n)
			}
			_, _, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(locktest.Unhurried(500*time.Millisecond)))
			wantPassing(t, "the wait has ended", err, c.says)

			before, end := sent.Hits(), time.Now().Add(timeout+time.Second)
			waits := []<-chan locktest.Outcome{
				locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(30*time.Second)),
				locktest.GoAcquire(t.Context(), locks.Lock("forever")),
				locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"), core.WaitTime(30*time.Second)),
				locktest.GoAcquire(ctx, locks.Lock("held"), core.WaitTime(30*time.Second)),
			}
			for time.Now().Before(end) {
				time.Sleep(10 * time.Millisecond) // the time in which no caller gets the lock
			}
			if n := sent.Hits() - before; n > 50*len(waits) {
				t.Errorf("%d commands in three seconds of waiting", n)
			}
			c.end(t, r.Client)
			for _, got := range waits {
				locktest.MustRelease(t, locktest.Got(r.T, got).Hold)
			}
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)
			r.WantFreed("k")
			if keys := r.Client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
				t.Errorf("left: %v", keys)
			}
		}})
	}
	locktest.Together(t, cases...)
}

// wantPassing checks that an error is ErrUnavailable with the answer of Redis.
func wantPassing(t *testing.T, what string, err error, says string) {
	t.Helper()
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	if err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %q does not name %s", what, err, says)
	}
}

// Operations without a wait time, such as Release and Refresh, wait within the backend timeout, and succeed.
func TestPassing_IsWaitedOutByHolders(t *testing.T) {
	t.Parallel()
	for _, c := range passing {
		locktest.Parallel(t, c.says, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			holds := make([]*core.Hold, 3)
			for i := range holds {
				_, holds[i] = locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint("k", i)))
			}
			c.begin(t, r.Client)
			sent := r.Proxy.Watch(locktest.Scripts)
			done := make(chan error, len(holds))
			for i, do := range []func(h *core.Hold) error{
				func(h *core.Hold) error { return h.Release(t.Context()) },
				func(h *core.Hold) error { return h.Refresh(t.Context(), time.Minute) },
				func(h *core.Hold) error { return h.Leave(t.Context(), time.Millisecond) },
			} {
				go func() { done <- do(holds[i]) }()
			}
			locktest.Eventually(t, "all to be refused", func() bool { return sent.Hits() > 3*len(holds) })
			c.end(t, r.Client)
			for range holds {
				locktest.WantOK(t, <-done)
			}
			locktest.MustRelease(t, holds[1])
			r.WantFreed("k0")
		})
	}
}

// TestPassing_ClusterDown takes the slot of a lock away from a Cluster and gives it back.
func TestPassing_ClusterDown(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.NewClient(t, cluster.Client(), core.WithBackendTimeout(2*time.Second))
	locktest.Warm(t, locks)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.MustRelease(t, hold)
	master := cluster.Master("k").Client()
	slot := int(master.ClusterKeySlot(t.Context(), "k").Val())
	locktest.Must(t, master.ClusterDelSlots(t.Context(), slot).Err())
	locktest.Eventually(t, "the slot to have no owner", func() bool {
		return strings.HasPrefix(fmt.Sprint(master.Get(t.Context(), "k").Err()), "CLUSTERDOWN")
	})
	_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(30*time.Second))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // the time in which no caller gets the lock
	}
	locktest.Must(t, master.ClusterAddSlots(t.Context(), slot).Err())
	locktest.MustRelease(t, locktest.Got(t, got).Hold)
}
