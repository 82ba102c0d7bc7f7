package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A renewal that failed is tried again at once, not a third of the lease later: three
// in a row would be the end of the lock.
func TestWatchdog_SurvivesThreeFailedRenewals(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"not executed": dropRequest, "reply lost": dropReply, "not in time": holdRequest, "reply not in time": holdReply,
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			const lease = 30 * time.Second
			locks, proxy := b.knowing()
			sent := proxy.Watch(scriptOn(t, "renew", "k"))
			var failed []*faultproxy.Rule
			for range 3 {
				failed = append(failed, f(proxy, faultproxy.Once(scriptOn(t, "renew", "k"))))
			}
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			pass(lease)
			if n := sent.Hits(); n < 4 || failed[2].Hits() != 1 {
				t.Errorf("%d renewals within a lease, the first three of which fail", n)
			}
			pass(lease)
			wantAlive(t, ctx)
			b.wantCount(hold, "1")
			b.wantTTL("k", lease/2, lease)
			released(t, hold)
		})
	}
}
