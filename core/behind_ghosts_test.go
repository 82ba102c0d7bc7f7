package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Several keys that are taken one by one share that second.
func TestBehindGhost_OfSeveralKeys(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.PutKeysApart(locks)
		stays := locktest.KeepGhosts(t, proxy, "a")
		locktest.KeepGhosts(t, proxy, "b")
		locktest.LeaveGhost(t, locks, proxy, "a")
		locktest.LeaveGhost(t, locks, proxy, "b")
		time.AfterFunc(200*time.Millisecond, stays.Remove)
		time.AfterFunc(700*time.Millisecond, func() { b.Del(context.Background(), "a") }) // if it still exists
		start := time.Now()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSoon(t, "refused after %s", start, time.Second)
	})
}
