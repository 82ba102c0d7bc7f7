package kinds_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Each client renews the lease on its server. The hold is lost when fewer leases than a majority are left.
func TestRedlock_IsLostWithItsMajority(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 5, func(t *testing.T, servers []*locktest.Redis) {
		seen := &locktest.Recorder{}
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", locktest.BehindEach(t, servers, core.WithObserver(seen.Observer()))...))
		locktest.Pass(time.Hour)
		locktest.WantAlive(t, ctx)
		locktest.TakeDown(servers[0])
		servers[1].Embedded.Expire("k")
		locktest.Pass(time.Hour)
		locktest.WantAlive(t, ctx)
		if left := hold.Remaining(); left < 15*time.Second {
			t.Errorf("remaining: %s, want at least 15s", left)
		}
		locktest.WantSame(t, "losses", seen.Count("loss"), 0)
		locktest.TakeDown(servers[2])
		gone := time.Now()
		<-ctx.Done()
		if took := time.Since(gone); took > 30*time.Second-302*time.Millisecond || took < 15*time.Second {
			t.Errorf("lost after %s, want 15s to 29.698s", took)
		}
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.Pass(time.Second)
		if n := seen.Count("loss"); n != 1 || hold.Remaining() != 0 {
			t.Errorf("%d losses reported; %s remain", n, hold.Remaining())
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantHeldOn(t, servers[3:], "k", 0)
	})
}

// The release succeeds although a minority of the servers has lost the lock, or has another holder.
func TestRedlock_ReleaseAfterLosingAMinority(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
			seen := &locktest.Recorder{}
			lock := core.Redlock("k", locktest.BehindEach(t, servers, core.WithObserver(seen.Observer()))...)
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
			servers[1].Embedded.Take("k", time.Hour)
			if known {
				locktest.Pass(time.Minute)
			}
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)
			locktest.WantSame(t, "losses", seen.Count("loss"), 0)
			locktest.WantHeldOn(t, servers, "k", 1)
		})
	}
}

// A release that finds the lock gone on a majority returns ErrLost.
func TestRedlock_ReleaseFindsItLost(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		seen := &locktest.Recorder{}
		_, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", locktest.BehindEach(t, servers, core.WithObserver(seen.Observer()))...))
		servers[1].Embedded.Take("k", time.Hour)
		servers[2].Embedded.Expire("k")
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantSame(t, "losses", seen.Count("loss"), 1)
		servers[0].WantGone("k")
	})
}

// If a server does not confirm the release, the release is an error, and the server is cleared up later.
func TestRedlock_UnconfirmedRelease(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", locktest.BehindEach(t, servers)...))
		locktest.TakeDown(servers[1])
		start := time.Now()
		locktest.WantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost, core.ErrNotHeld)
		locktest.WantSoon(t, "the call took %s", start, 2*time.Second)
		servers[0].WantGone("k")
		servers[2].WantGone("k")
		servers[1].Embedded.Up()
		locktest.Pass(5 * time.Second)
		locktest.WantHeldOn(t, servers, "k", 0)
	})
}

func TestRedlock_ReentersThroughTheContext(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		seen := &locktest.Recorder{}
		clients := locktest.BehindEach(t, servers, core.WithObserver(seen.Observer()))
		lock := core.Redlock("k", clients...)
		locktest.TakeDown(servers[2])
		outer, hold := locktest.MustAcquire(t, t.Context(), lock)
		servers[2].Embedded.Up()
		inner, second := locktest.MustAcquire(t, outer, core.Redlock("k", clients[1], clients[0], clients[2]), core.WaitTime(0))
		for _, s := range servers[:2] {
			for _, count := range s.HGetAll(t.Context(), "k").Val() {
				if count != "2" {
					t.Errorf("count %s, want 2", count)
				}
			}
		}
		servers[2].WantGone("k")
		if hold.Key() != second.Key() || seen.Count("acquire end") != 2 {
			t.Error("the Redlock and the re-entry were not reported as one lock each")
		}
		_, member := locktest.MustAcquire(t, inner, clients[0].Lock("k"), core.WaitTime(0)) // the lock on one server is a lock like others
		locktest.MustRelease(t, member)
		locktest.MustRelease(t, second)
		locktest.WantAlive(t, outer)
		locktest.WantHeldOn(t, servers, "k", 2)
		locktest.MustRelease(t, hold)
		locktest.WantHeldOn(t, servers, "k", 0)
	})
}

// A Redlock re-enters locks that the context holds on a minority of the servers, and takes the others.
func TestRedlock_UnderALockOfOneMember(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		clients := locktest.BehindEach(t, servers)
		outer, hold := locktest.MustAcquire(t, t.Context(), clients[1].Lock("k"))
		_, second := locktest.MustAcquire(t, outer, core.Redlock("k", clients...), core.WaitTime(time.Second))
		locktest.WantHeldOn(t, servers, "k", 3)
		locktest.MustRelease(t, second)
		locktest.WantHeldOn(t, servers, "k", 1)
		servers[0].Embedded.Take("k", time.Hour)
		servers[2].Embedded.Take("k", time.Hour)
		_, _, err := core.Redlock("k", clients...).Acquire(outer, core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.Pass(time.Second)
		servers[1].WantCount(hold, "1")
		locktest.MustRelease(t, hold)
	})
}

// A re-entry without a majority is a loss, or ErrUnavailable if servers do not answer.
func TestRedlock_ReentryNeedsAMajority(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
		outer, hold := locktest.MustAcquire(t, t.Context(), lock)
		servers[0].Embedded.Expire("k")
		_, second := locktest.MustAcquire(t, outer, lock, core.WaitTime(0)) // a majority answers
		locktest.MustRelease(t, second)
		locktest.TakeDown(servers[1])
		_, _, err := lock.Acquire(outer, core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrUnavailable)
		servers[1].Embedded.Up()
		locktest.Pass(2 * time.Second)
		locktest.WantAlive(t, outer)
		servers[1].Embedded.Expire("k")
		_, _, err = lock.Acquire(outer, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrLost)
		locktest.WantEnded(t, outer, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantNowhere(t, servers, "k")
	})
}

func TestRedlock_RefreshLeaveHandover(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		clients := locktest.BehindEach(t, servers)
		lock := core.Redlock("k", clients...)
		ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(10*time.Second))
		servers[0].Embedded.Expire("k")
		locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
		if left := hold.Remaining(); left < 59*time.Second {
			t.Errorf("remaining: %s, want at least 59s", left)
		}
		moved, next := hold.Handover()
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		locktest.Pass(30 * time.Second)
		locktest.WantAlive(t, moved)
		inner, second := locktest.MustAcquire(t, moved, lock, core.WaitTime(0))
		locktest.WantErr(t, next.Leave(t.Context(), time.Second), core.ErrInvalid)
		locktest.MustRelease(t, second)
		locktest.WantEnded(t, inner, core.ErrReleased)
		locktest.Must(t, next.Leave(t.Context(), 5*time.Second))
		locktest.WantEnded(t, moved, core.ErrReleased)
		locktest.WantHeldOn(t, servers, "k", 2)
		_, _, err := lock.Acquire(ctx, core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.Pass(5 * time.Second)
		locktest.WantHeldOn(t, servers, "k", 0)
	})
}

// A Refresh without a majority is an error.
func TestRedlock_RefreshNeedsAMajority(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", locktest.BehindEach(t, servers)...), core.LeaseTime(10*time.Second))
		locktest.TakeDown(servers[0])
		locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
		locktest.TakeDown(servers[1])
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrUnavailable)
		locktest.WantAlive(t, ctx)
		<-ctx.Done()
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// Two Redlocks whose clients are in different orders, and that leave at once, do not block each other.
func TestRedlock_LeavesInAnyOrder(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		clients := locktest.BehindEach(t, servers)
		reversed := slices.Clone(clients)
		slices.Reverse(reversed)
		for range 200 {
			ctx, outer := locktest.MustAcquire(t, t.Context(), core.Redlock("k", clients...))
			_, inner := locktest.MustAcquire(t, ctx, core.Redlock("k", reversed...))
			locktest.Concurrently(2, func(i int) { _ = []*core.Hold{outer, inner}[i].Leave(t.Context(), time.Millisecond) })
			_ = inner.Release(t.Context())
			_ = outer.Release(t.Context())
			locktest.Pass(2 * time.Millisecond)
		}
		locktest.WantNowhere(t, servers, "k")
	})
}

// One client of a Redlock is closed, and its server no longer counts for the hold. The hold goes on while a majority
// counts.
func TestRedlock_OneClientIsClosed(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		clients := locktest.BehindEach(t, servers)
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", clients...))
		locktest.WantSame(t, "holds of the last client", len(clients[2].Holds()), 1)
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		locktest.WantErr(t, clients[2].Close(ended), core.ErrClosed)
		locktest.Pass(time.Hour)
		locktest.WantAlive(t, ctx)
		locktest.WantErr(t, clients[1].Close(ended), core.ErrClosed)
		locktest.WantEnded(t, ctx, core.ErrClosed)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		servers[0].WantGone("k")
	})
}

// The observers of the first client are notified of one lock, even if its server is dead.
func TestRedlock_Observers(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		seen, others, backend := &locktest.Recorder{}, &locktest.Recorder{}, &locktest.BackendRecorder{}
		clients := append(locktest.BehindEach(t, servers[:1], core.WithObserver(seen.Observer(), backend.Observer())), locktest.BehindEach(t, servers[1:], core.WithObserver(others.Observer()))...)
		locktest.TakeDown(servers[0])
		ctx, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", clients...), core.Label("l"))
		end := seen.First(t, "acquire end").Data.(core.AcquireResult)
		if end.Kind != core.KindRedlock || end.Keys != 1 || end.Key != "k" || end.Label != "l" || end.Field != hold.Field() ||
			end.Outcome != core.OutcomeAcquired || end.Attempts < 2 || end.Contended || end.RoundTrip < 0 {
			t.Errorf("reported %+v", end)
		}
		info := seen.First(t, "hold start").Data.(core.HoldInfo)
		if info.Kind != core.KindRedlock || info.Keys != 1 || !info.Watchdog {
			t.Errorf("reported %+v", info)
		}
		locktest.Pass(15 * time.Second)
		locktest.WantSame(t, "renewals", seen.Count("renewal"), 2)
		_, inner := locktest.MustAcquire(t, ctx, core.Redlock("k", clients...))
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		locktest.WantSame(t, "ends", seen.Count("hold end"), 2)
		if names := others.Names(); len(names) != 0 {
			t.Errorf("the other clients report %v", names)
		}
		if changes := backend.All(); len(changes) != 1 || changes[0].ClientID != clients[0].ID() {
			t.Errorf("the client of the dead server reports %v", changes)
		}
	})
}
