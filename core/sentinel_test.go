package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

func TestSentinel_LockContendFailover(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	locks := locksOn(t, s.Client(), core.WithBackendTimeout(2*time.Second), core.WithWatchdog(10*time.Second))
	master := s.Master.Client()

	ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
	if got := master.HGet(t.Context(), "k", hold.Field()).Val(); got != "1" {
		t.Errorf("on the master: count %q", got)
	}
	_, _, err := locksOn(t, s.Client(), patient).Lock("k").Acquire(t.Context(), core.WaitTime(0))
	wantErr(t, err, core.ErrNotAcquired)
	at := acquiredAt(t, locks, "k")
	waiters(t, locks, 1)
	released(t, hold)
	<-at
	wantEnded(t, ctx, core.ErrReleased)

	// The master dies. The locks come back without a restart; while nobody answers,
	// the lock is neither taken nor acquired.
	s.Master.Kill()
	_, _, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(400*time.Millisecond))
	if err != nil {
		wantErr(t, err, core.ErrUnavailable)
	}
	s.AwaitFailover()
	eventually(t, "recovery", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(5*time.Second)) == nil
	})
}
