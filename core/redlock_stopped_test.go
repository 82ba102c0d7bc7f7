//go:build unix

package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Real servers are stopped one by one while the lock is held and wanted: it lasts as long as a
// majority goes on, is lost when its leases are over, and can be acquired when they go on. They serve
// late then what they were sent meanwhile: that harms nobody, and nothing is left of it.
func TestRedlock_StoppedServers(t *testing.T) {
	t.Parallel()
	lease := locktest.Unhurried(4 * time.Second)
	servers := make([]*redisserver.Server, 5)
	var mine, theirs []*core.Client
	told := &locktest.Recorder{}
	for i := range servers {
		servers[i] = redisserver.Start(t)
		mine = append(mine, locktest.NewClient(t, servers[i].Client(), core.WithWatchdog(lease), core.WithObserver(told.Observer())))
		theirs = append(theirs, locktest.NewClient(t, servers[i].Client(), core.WithWatchdog(lease)))
	}
	ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", mine...))
	other := core.Redlock("k", theirs...)
	rival := locktest.GoAcquire(t.Context(), other, core.WaitTime(2*time.Minute))

	servers[4].Stop() // for less than a lease: this one goes on to count
	<-time.After(lease / 4)
	servers[4].Continue()
	for _, s := range servers[:2] {
		s.Stop()
		<-time.After(lease + lease/4) // what it had granted is over
		locktest.WantAlive(t, ctx)
	}
	select {
	case o := <-rival:
		t.Fatalf("another one is answered while it is held: %v", o.Err)
	default:
	}
	locktest.WantSame(t, "losses", told.Count("loss"), 0)

	servers[2].Stop()
	<-time.After(lease) // nobody has been asked for a majority since
	locktest.WantEnded(t, ctx, core.ErrLost)
	if hold.Remaining() != 0 {
		t.Errorf("%s remain", hold.Remaining())
	}
	locktest.Eventually(t, "told of the loss", func() bool { return told.Count("loss") == 1 })
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
	<-time.After(lease / 2) // what was late has landed
	locktest.WantAlive(t, next.Ctx)
	locktest.MustRelease(t, next.Hold)
	for _, s := range servers {
		rdb := s.Client()
		locktest.Eventually(t, "nothing to be left", func() bool { return rdb.DBSize(t.Context()).Val() == 0 })
	}
}
