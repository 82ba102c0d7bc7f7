package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// failover kills the master behind a separate Sentinel. Both sides find the new master, and exclude and wake each
// other there.
func failover(t *testing.T, s *site) {
	srv := redisserver.StartSentinel(t)
	java := s.jvm.Open(t, interop.Config{
		Mode: sentinel, Addrs: []string{srv.Sentinel.Addr()}, Master: redisserver.MasterName,
		Timeout: time.Second, Retries: "1",
	})
	locks := newLocks(t, srv.Client())
	k := kindOf("reentrant")
	for _, d := range bothWays(java, locks) {
		take(t, d.holder, k, unique("before")).release(t)
	}

	srv.Master.Kill()
	srv.AwaitFailover()
	eventually(t, "Java to find the new master", func() bool {
		a := java.Thread(t).Lock(k.java, unique("found")).TryOnce().Answer()
		return a.Err == nil && a.Value == "true"
	})
	eventually(t, "Go to find the new master", func() bool {
		nothing := func(context.Context) error { return nil }
		return locks.Lock(unique("found")).Do(t.Context(), nothing, core.WaitTime(time.Second)) == nil
	})

	for _, d := range bothWays(java, locks) {
		name := unique("after")
		holder := take(t, d.holder, k, name)
		wantRefused(t, d.waiter, k, name)
		grants := d.waiter.ask(t, k, name)
		settle()
		released := holder.release(t)
		next := receive(t, grants, d.String())
		if took := next.at.Sub(released); took > wokenWithin {
			t.Errorf("%s: waited %s after the release, want at most %s", d, took, wokenWithin)
		}
		next.release(t)
	}
}
