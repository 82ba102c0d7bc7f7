//go:build unix

package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Real servers are stopped one by one while the lock is held and wanted: it lasts as long as a
// majority goes on, is lost when its leases are over, and can be acquired when they go on. They serve
// late then what they were sent meanwhile: that harms nobody, and nothing is left of it.
func TestRedlock_StoppedServers(t *testing.T) {
	t.Parallel()
	lease := unhurried(4 * time.Second)
	servers := make([]*redisserver.Server, 5)
	var mine, theirs []*core.Client
	told := newRecorder()
	for i := range servers {
		servers[i] = redisserver.Start(t)
		mine = append(mine, locksOn(t, servers[i].Client(), core.WithWatchdog(lease), core.WithObserver(told.observer())))
		theirs = append(theirs, locksOn(t, servers[i].Client(), core.WithWatchdog(lease)))
	}
	ctx, hold := acquired(t, t.Context(), core.Redlock("k", mine...))
	other := core.Redlock("k", theirs...)
	rival := acquiring(t.Context(), other, core.WaitTime(2*time.Minute))

	servers[4].Stop() // for less than a lease: this one goes on to count
	<-time.After(lease / 4)
	servers[4].Continue()
	for _, s := range servers[:2] {
		s.Stop()
		<-time.After(lease + lease/4) // what it had granted is over
		wantAlive(t, ctx)
	}
	select {
	case o := <-rival:
		t.Fatalf("another one is answered while it is held: %v", o.err)
	default:
	}
	wantSame(t, "losses", told.count("loss"), 0)

	servers[2].Stop()
	<-time.After(lease) // nobody has been asked for a majority since
	wantEnded(t, ctx, core.ErrLost)
	if hold.Remaining() != 0 {
		t.Errorf("%s remain", hold.Remaining())
	}
	eventually(t, "told of the loss", func() bool { return told.count("loss") == 1 })
	wantOnly(t, (<-rival).err, core.ErrUnavailable, core.ErrNotAcquired) // no majority answers
	for _, s := range servers[:3] {
		s.Continue()
	}
	var next outcome
	eventually(t, "a majority to be back", func() bool {
		next = <-acquiring(t.Context(), other, core.WaitTime(10*time.Second))
		return next.err == nil
	})
	wantErr(t, hold.Release(t.Context()), core.ErrLost)
	<-time.After(lease / 2) // what was late has landed
	wantAlive(t, next.ctx)
	released(t, next.hold)
	for _, s := range servers {
		rdb := s.Client()
		eventually(t, "nothing to be left", func() bool { return rdb.DBSize(t.Context()).Val() == 0 })
	}
}
