package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// condition is something that makes a real Redis refuse all commands for a while.
type condition struct {
	says       string
	begin, end func(t *testing.T, rdb *redis.Client)
}

func config(parameter, value string) func(t *testing.T, rdb *redis.Client) {
	return func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		must(t, rdb.ConfigSet(context.Background(), parameter, value).Err())
	}
}

var passing = []condition{
	{"NOREPLICAS", config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0")},
	{"BUSY", func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		must(t, rdb.ConfigSet(t.Context(), "busy-reply-threshold", "10").Err())
		go rdb.WithTimeout(time.Minute).Eval(context.Background(), "while true do end", nil)
		eventually(t, "a script to run", func() bool { return redis.HasErrorPrefix(rdb.Ping(t.Context()).Err(), "BUSY") })
	}, func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		must(t, rdb.ScriptKill(context.Background()).Err())
	}},
	{"MASTERDOWN", func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		must(t, rdb.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err())
		must(t, rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	}, func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		must(t, rdb.ReplicaOf(context.Background(), "no", "one").Err())
	}},
}

// TestPassing_IsWaitedOut has a Redis that is there but refuses everything for much
// longer than the backend timeout. Who waits for a lock, or enters one again, waits for
// that, too, without asking all the time; who does not wait fails at once, with the cause.
// Nothing of what was refused is left behind.
func TestPassing_IsWaitedOut(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	var cases []oneOf
	for _, c := range passing {
		cases = append(cases, oneOf{c.says, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(core.WithBackendTimeout(timeout))
			ctx, hold := acquired(t, t.Context(), locks.Lock("held"))
			c.begin(t, r.direct)
			sent := r.proxy.Watch(scripts)

			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			wantPassing(t, "without waiting", err, c.says)
			wantSame(t, "attempts without waiting", sent.Hits(), 1)
			_, _, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(500*time.Millisecond))
			wantPassing(t, "the wait is over", err, c.says)

			before, end := sent.Hits(), time.Now().Add(timeout+time.Second)
			waits := []<-chan outcome{
				acquiring(t.Context(), locks.Lock("k"), core.WaitTime(30*time.Second)),
				acquiring(t.Context(), locks.Lock("forever")),
				acquiring(t.Context(), locks.MultiLock("a", "b"), core.WaitTime(30*time.Second)),
				acquiring(ctx, locks.Lock("held"), core.WaitTime(30*time.Second)),
			}
			for time.Now().Before(end) {
				time.Sleep(10 * time.Millisecond) // the time in which nobody gets it
			}
			if n := sent.Hits() - before; n > 50*len(waits) {
				t.Errorf("%d commands in three seconds of waiting", n)
			}
			c.end(t, r.direct)
			for _, got := range waits {
				released(t, r.mustHold(got).hold)
			}
			wantAlive(t, ctx)
			released(t, hold)
			r.freed("k")
			if keys := r.direct.Keys(t.Context(), "*").Val(); len(keys) != 0 {
				t.Errorf("left: %v", keys)
			}
		}})
	}
	together(t, cases...)
}

// wantPassing wants the lock to be unavailable, and the error to say why.
func wantPassing(t *testing.T, what string, err error, says string) {
	t.Helper()
	wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	if err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %q does not name %s", what, err, says)
	}
}

// Operations without a wait time wait it out within the backend timeout: a release is
// one all the same, and so is a refresh.
func TestPassing_IsWaitedOutByHolders(t *testing.T) {
	t.Parallel()
	for _, c := range passing {
		parallel(t, c.says, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(patient)
			holds := make([]*core.Hold, 3)
			for i := range holds {
				_, holds[i] = acquired(t, t.Context(), locks.Lock(fmt.Sprint("k", i)))
			}
			c.begin(t, r.direct)
			sent := r.proxy.Watch(scripts)
			done := make(chan error, len(holds))
			for i, do := range []func(h *core.Hold) error{
				func(h *core.Hold) error { return h.Release(t.Context()) },
				func(h *core.Hold) error { return h.Refresh(t.Context(), time.Minute) },
				func(h *core.Hold) error { return h.Leave(t.Context(), time.Millisecond) },
			} {
				go func() { done <- do(holds[i]) }()
			}
			eventually(t, "all to be refused", func() bool { return sent.Hits() > 3*len(holds) })
			c.end(t, r.direct)
			for range holds {
				wantOK(t, <-done)
			}
			released(t, holds[1])
			r.freed("k0")
		})
	}
}

// TestPassing_ClusterDown takes the slot of a lock away from a Cluster, and gives it back.
func TestPassing_ClusterDown(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locksOn(t, cluster.Client(), core.WithBackendTimeout(2*time.Second))
	warm(t, locks)
	_, hold := acquired(t, t.Context(), locks.Lock("k"))
	released(t, hold)
	master := cluster.Master("k").Client()
	slot := int(master.ClusterKeySlot(t.Context(), "k").Val())
	must(t, master.ClusterDelSlots(t.Context(), slot).Err())
	eventually(t, "the slot to be nobody's", func() bool {
		return strings.HasPrefix(fmt.Sprint(master.Get(t.Context(), "k").Err()), "CLUSTERDOWN")
	})
	_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
	wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	got := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(30*time.Second))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // the time in which nobody gets it
	}
	must(t, master.ClusterAddSlots(t.Context(), slot).Err())
	o := <-got
	must(t, o.err)
	released(t, o.hold)
}
