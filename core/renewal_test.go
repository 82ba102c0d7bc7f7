package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A renewal that failed is tried again at once, not a third of the lease later: three
// in a row would be the end of the lock.
func TestWatchdog_SurvivesThreeFailedRenewals(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.DropRequest, locktest.DropReply, locktest.HoldRequest, locktest.HoldReply} {
		locktest.ParallelBubble(t, f.Name, func(t *testing.T, b *locktest.Redis) {
			const lease = 30 * time.Second
			locks, proxy := b.BehindAProxy()
			sent := proxy.Watch(locktest.ScriptOn(t, "renew", "k"))
			var failed []*faultproxy.Rule
			for range 3 {
				failed = append(failed, f.Inject(proxy, faultproxy.Once(locktest.ScriptOn(t, "renew", "k"))))
			}
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.Pass(lease)
			if n := sent.Hits(); n < 4 || failed[2].Hits() != 1 {
				t.Errorf("%d renewals within a lease, the first three of which fail", n)
			}
			locktest.Pass(lease)
			locktest.WantAlive(t, ctx)
			b.WantCount(hold, "1")
			b.WantTTL("k", lease/2, lease)
			locktest.MustRelease(t, hold)
		})
	}
}
