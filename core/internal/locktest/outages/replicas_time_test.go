package outages_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/redistest"
)

// pretendReplicas runs a test in a bubble on an embedded Redis that pretends to have replicas.
func pretendReplicas(t *testing.T, body func(t *testing.T, srv *redistest.Server, b *locktest.Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		body(t, srv, &locktest.Redis{T: t, Client: srv.Client(), Connect: srv.Client})
	})
}

// The client waits for replicas exactly as long as configured, and never longer than the wait time.
func TestReplicas_TimeOfAShortfall(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(3, 3)
		locks := b.Locks(core.WithReplicaAcks(core.AcksMajority, 2*time.Second))
		b.Warm(locks)
		srv.Replicas(3, 1)
		for _, c := range []struct {
			opts  []core.AcquireOption
			least time.Duration
			most  time.Duration
		}{
			{nil, 2 * time.Second, 2 * time.Second},
			{[]core.AcquireOption{core.WaitTime(0)}, 2 * time.Second, 2 * time.Second},
			{[]core.AcquireOption{core.WaitTime(time.Second)}, 800 * time.Millisecond, time.Second},
		} {
			start := time.Now()
			_, _, err := locks.Lock("k").Acquire(t.Context(), c.opts...)
			locktest.WantShort(t, err, 2, 1)
			if took := time.Since(start); took < c.least || took > c.most {
				t.Errorf("a shortfall after %s, want %s to %s", took, c.least, c.most)
			}
		}
		b.WantGone("k")
	})
}

// While the replicas of one command are slow, other commands do not wait, with or without acknowledgements, and the
// client does not treat Redis as silent.
func TestReplicas_OtherCallersDoNotWait(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(1, 1)
		locks := b.Locks(core.WithReplicaAcks(core.AcksAll, 2900*time.Millisecond))
		beside := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"))
		srv.Replicas(1, 0)
		ended := make(chan error, 1)
		go func() {
			_, _, err := locks.Lock("slow").Acquire(t.Context())
			ended <- err
		}()
		locktest.Pass(500 * time.Millisecond)
		start := time.Now()
		locktest.MustRelease(t, hold)
		_, hold = locktest.MustAcquire(t, t.Context(), beside.Lock("held"))
		if _, err := locks.Lock("slow").State(t.Context()); err != nil {
			t.Error(err)
		}
		locktest.MustRelease(t, hold)
		srv.Replicas(1, 1)
		_, hold = locktest.MustAcquire(t, t.Context(), locks.Lock("another"))
		locktest.MustRelease(t, hold)
		locktest.WantSoon(t, "the others took %s", start, 10*time.Millisecond)
		locktest.WantOK(t, <-ended)
	})
}

// A hold whose renewals are not acknowledged lasts exactly until the deadline of the last acknowledged renewal. It
// goes on if a renewal is acknowledged before. If it is lost, the client frees the lock that the master has renewed.
func TestReplicas_OnlyAcknowledgedRenewalsCount(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(2, 2)
		seen := &locktest.Renewals{}
		locks := b.Locks(core.WithReplicaAcks(core.AcksAll, time.Second), core.WithObserver(seen.Observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		srv.Replicas(2, 1)
		locktest.Pass(20 * time.Second)
		if seen.Good() > 0 || seen.Failure() == nil {
			t.Errorf("%d renewals count, first failure: %v", seen.Good(), seen.Failure())
		}
		locktest.WantAlive(t, ctx)
		srv.Replicas(2, 2)
		locktest.Pass(20 * time.Second)
		locktest.WantAlive(t, ctx)

		srv.Replicas(0, 0) // all replicas are gone
		last := hold.Remaining()
		locktest.Pass(last)
		locktest.Pass(20 * time.Millisecond)
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("k")
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// Waiters of the same client acquire one after the other, each by a separate command. The release wakes the next
// waiter.
func TestReplicas_WaitersTakeTurns(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(1, 1)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.AcksAll, time.Second))
		waits := proxy.Watch(faultproxy.Command("wait"))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		const n = 20
		ended := make(chan error, n)
		for range n {
			go func() {
				ended <- locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil })
			}()
		}
		locktest.Pass(100 * time.Millisecond)
		start := time.Now()
		locktest.MustRelease(t, hold)
		for range n {
			locktest.WantOK(t, <-ended)
		}
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("%d turns took %s, want at most 200ms", n, took)
		}
		if got := waits.Hits(); got < n+1 {
			t.Errorf("%d acquisitions were acknowledged, want %d", got, n+1)
		}
	})
}

// If the caller's context ends after Redis has executed the script, the client frees the lock.
func TestReplicas_CallerLeaves(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(1, 0)
		locks := b.Locks(core.WithReplicaAcks(core.AcksAll, 2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx)
		if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		locktest.Pass(5 * time.Second)
		b.WantGone("k")
	})
}

// A script that Redis has forgotten is sent in full, and acknowledged.
func TestReplicas_ScriptIsSentAgain(t *testing.T) {
	t.Parallel()
	pretendReplicas(t, func(t *testing.T, srv *redistest.Server, b *locktest.Redis) {
		srv.Replicas(1, 1)
		locks := b.Locks(core.WithReplicaAcks(core.AcksAll, time.Second))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.Must(t, b.ScriptFlush(t.Context()).Err())
		locktest.Pass(25 * time.Second) // renewals
		locktest.WantAlive(t, ctx)
		if left := hold.Remaining(); left < 15*time.Second {
			t.Errorf("the hold lasts for %s, want at least 15s", left)
		}
		locktest.Must(t, b.ScriptFlush(t.Context()).Err())
		srv.Replicas(1, 0)
		_, _, err := locks.Lock("other").Acquire(t.Context())
		locktest.WantShort(t, err, 1, 0)
		locktest.MustRelease(t, hold)
	})
}
