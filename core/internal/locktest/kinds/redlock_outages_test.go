package kinds_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Some of the real servers of a Redlock are killed, and one of them comes back.
func TestRedlock_KilledServers(t *testing.T) {
	t.Parallel()
	const n = 5
	servers := make([]*redisserver.Server, n)
	clients := make([]*core.Client, n)
	for i := range servers {
		servers[i] = redisserver.Start(t)
		clients[i] = locktest.NewClient(t, servers[i].Client(), core.WithBackendTimeout(2*time.Second))
	}
	lock := core.Redlock("k", clients...)
	once := func() error {
		return lock.Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(0))
	}
	locktest.Must(t, once())

	servers[1].Kill()
	servers[2].Kill()
	locktest.Must(t, once())
	ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
	servers[3].Kill()
	locktest.WantAlive(t, ctx)
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrUnavailable)

	start := time.Now()
	locktest.WantOnly(t, once(), core.ErrUnavailable, core.ErrNotAcquired)
	locktest.WantAtMost(t, "the attempt", time.Since(start), 4*time.Second)
	for _, i := range []int{0, 4} {
		rdb := servers[i].Client()
		locktest.Eventually(t, "nothing to be left", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	}
	servers[3].Restart()
	locktest.Eventually(t, "a majority to be back", func() bool { return once() == nil })
}

// Callers of two processes contend for a Redlock on real servers.
func TestRedlock_OnRealServers(t *testing.T) {
	t.Parallel()
	servers := []*redisserver.Server{redisserver.Start(t), redisserver.Start(t), redisserver.Start(t)}
	var inside, turns atomic.Int64
	locktest.Concurrently(2, func(int) {
		var clients []*core.Client
		for _, s := range servers {
			clients = append(clients, locktest.NewClient(t, s.Client(), locktest.Patient))
		}
		locktest.Concurrently(4, func(int) {
			for range 25 {
				err := core.Redlock("k", clients...).Do(t.Context(), func(context.Context) error {
					if turns.Add(1); inside.Add(1) > 1 {
						t.Error("two holders")
					}
					inside.Add(-1)
					return nil
				})
				locktest.WantOK(t, err)
			}
		})
	})
	locktest.WantSame(t, "turns", turns.Load(), 200)
	for _, s := range servers {
		if s.Client().Exists(t.Context(), "k").Val() != 0 {
			t.Error("the key is left")
		}
	}
}

// Real servers are stopped one by one while the lock is held and wanted. The hold lasts as long as a majority goes
// on and is lost when its leases have expired. When the servers go on, the lock can be acquired again. Commands that
// they execute late do no harm and leave nothing.
func TestRedlock_StoppedServers(t *testing.T) {
	t.Parallel()
	lease := locktest.Unhurried(4 * time.Second)
	servers := make([]*redisserver.Server, 5)
	var mine, theirs []*core.Client
	seen := &locktest.Recorder{}
	for i := range servers {
		servers[i] = redisserver.Start(t)
		mine = append(mine, locktest.NewClient(t, servers[i].Client(), locktest.Patient, core.WithWatchdog(lease), core.WithObserver(seen.Observer())))
		theirs = append(theirs, locktest.NewClient(t, servers[i].Client(), locktest.Patient, core.WithWatchdog(lease)))
	}
	ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", mine...))
	other := core.Redlock("k", theirs...)
	rival := locktest.GoAcquire(t.Context(), other, core.WaitTime(2*time.Minute))

	servers[4].Stop() // for less than a lease: this server still counts
	<-time.After(lease / 4)
	servers[4].Continue()
	for _, s := range servers[:2] {
		s.Stop()
		<-time.After(lease + lease/4) // its grants have expired
		locktest.WantAlive(t, ctx)
	}
	select {
	case o := <-rival:
		t.Fatalf("a second caller returned while the lock is held: %v", o.Err)
	default:
	}
	locktest.WantSame(t, "losses", seen.Count("loss"), 0)

	servers[2].Stop()
	<-time.After(lease) // no client has asked for a majority since
	locktest.WantEnded(t, ctx, core.ErrLost)
	if hold.Remaining() != 0 {
		t.Errorf("%s of a lost hold remain", hold.Remaining())
	}
	locktest.Eventually(t, "report of the loss", func() bool { return seen.Count("loss") == 1 })
	locktest.WantOnly(t, (<-rival).Err, core.ErrUnavailable, core.ErrNotAcquired) // no majority answers
	for _, s := range servers[:3] {
		s.Continue()
	}
	var next locktest.Outcome
	locktest.Eventually(t, "a majority to be back", func() bool {
		next = <-locktest.GoAcquire(t.Context(), other, core.WaitTime(10*time.Second))
		return next.Err == nil
	})
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	<-time.After(lease / 2) // late commands have landed
	locktest.WantAlive(t, next.Ctx)
	locktest.MustRelease(t, next.Hold)
	for _, s := range servers {
		rdb := s.Client()
		locktest.Eventually(t, "nothing to be left", func() bool { return rdb.DBSize(t.Context()).Val() == 0 })
	}
}
