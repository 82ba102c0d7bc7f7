package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Every client renews its own lease; the hold lasts as long as a majority does.
func TestRedlock_IsLostWithItsMajority(t *testing.T) {
	t.Parallel()
	onIslands(t, 5, func(t *testing.T, servers []*island) {
		told := newRecorder()
		ctx, hold := acquired(t, t.Context(), core.Redlock("k", process(t, servers, core.WithObserver(told.observer()))...))
		pass(time.Hour)
		wantAlive(t, ctx)
		down(servers[0])
		servers[1].srv.Expire("k")
		pass(time.Hour)
		wantAlive(t, ctx)
		if left := hold.Remaining(); left < 15*time.Second {
			t.Errorf("remaining: %s", left)
		}
		wantSame(t, "losses", told.count("loss"), 0)
		down(servers[2])
		gone := time.Now()
		<-ctx.Done()
		if took := time.Since(gone); took > 30*time.Second-302*time.Millisecond || took < 15*time.Second {
			t.Errorf("lost after %s", took)
		}
		wantEnded(t, ctx, core.ErrLost)
		pass(time.Second)
		if n := told.count("loss"); n != 1 || hold.Remaining() != 0 {
			t.Errorf("told of %d losses; %s remain", n, hold.Remaining())
		}
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantHeldOn(t, servers[3:], "k", 0)
	})
}

// What a minority has lost is no error of the release; nor is it one that others took it there.
func TestRedlock_ReleaseWithoutALostMinority(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		onIslands(t, 3, func(t *testing.T, servers []*island) {
			told := newRecorder()
			lock := core.Redlock("k", process(t, servers, core.WithObserver(told.observer()))...)
			ctx, hold := acquired(t, t.Context(), lock)
			servers[1].srv.Take("k", time.Hour)
			if known {
				pass(time.Minute)
			}
			wantAlive(t, ctx)
			released(t, hold)
			wantSame(t, "losses", told.count("loss"), 0)
			wantHeldOn(t, servers, "k", 1)
		})
	}
}

// A release that finds the majority gone has lost the lock.
func TestRedlock_ReleaseFindsItLost(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		told := newRecorder()
		_, hold := acquired(t, t.Context(), core.Redlock("k", process(t, servers, core.WithObserver(told.observer()))...))
		servers[1].srv.Take("k", time.Hour)
		servers[2].srv.Expire("k")
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantSame(t, "losses", told.count("loss"), 1)
		servers[0].wantGone("k")
	})
}

// A server that does not confirm the release is an error, and cleared up later.
func TestRedlock_ReleaseThatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		_, hold := acquired(t, t.Context(), core.Redlock("k", process(t, servers)...))
		down(servers[1])
		start := time.Now()
		wantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost, core.ErrNotHeld)
		wantSoon(t, "took %s", start, 2*time.Second)
		servers[0].wantGone("k")
		servers[2].wantGone("k")
		servers[1].srv.Up()
		pass(5 * time.Second)
		wantHeldOn(t, servers, "k", 0)
	})
}

func TestRedlock_ReentersThroughTheContext(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		told := newRecorder()
		clients := process(t, servers, core.WithObserver(told.observer()))
		lock := core.Redlock("k", clients...)
		down(servers[2])
		outer, hold := acquired(t, t.Context(), lock)
		servers[2].srv.Up()
		inner, second := acquired(t, outer, core.Redlock("k", clients[1], clients[0], clients[2]), core.WaitTime(0))
		for _, s := range servers[:2] {
			for _, count := range s.HGetAll(t.Context(), "k").Val() {
				if count != "2" {
					t.Errorf("count %s", count)
				}
			}
		}
		servers[2].wantGone("k")
		if hold.Key() != second.Key() || told.count("acquire end") != 2 {
			t.Error("not one lock")
		}
		_, member := acquired(t, inner, clients[0].Lock("k"), core.WaitTime(0)) // a member is a lock like others
		released(t, member)
		released(t, second)
		wantAlive(t, outer)
		wantHeldOn(t, servers, "k", 2)
		released(t, hold)
		wantHeldOn(t, servers, "k", 0)
	})
}

// What the context holds of a minority only is entered again, and the others are taken.
func TestRedlock_UnderALockOfOneMember(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		clients := process(t, servers)
		outer, hold := acquired(t, t.Context(), clients[1].Lock("k"))
		_, second := acquired(t, outer, core.Redlock("k", clients...), core.WaitTime(time.Second))
		wantHeldOn(t, servers, "k", 3)
		released(t, second)
		wantHeldOn(t, servers, "k", 1)
		servers[0].srv.Take("k", time.Hour)
		servers[2].srv.Take("k", time.Hour)
		_, _, err := core.Redlock("k", clients...).Acquire(outer, core.WaitTime(time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		pass(time.Second)
		servers[1].wantCount(hold, "1")
		released(t, hold)
	})
}

// A re-entry that no majority confirms is a loss, or says that servers do not answer.
func TestRedlock_ReentryNeedsAMajority(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		lock := core.Redlock("k", process(t, servers)...)
		outer, hold := acquired(t, t.Context(), lock)
		servers[0].srv.Expire("k")
		_, second := acquired(t, outer, lock, core.WaitTime(0)) // a majority is there
		released(t, second)
		down(servers[1])
		_, _, err := lock.Acquire(outer, core.WaitTime(time.Second))
		wantErr(t, err, core.ErrUnavailable)
		servers[1].srv.Up()
		pass(2 * time.Second)
		wantAlive(t, outer)
		servers[1].srv.Expire("k")
		_, _, err = lock.Acquire(outer, core.WaitTime(0))
		wantErr(t, err, core.ErrLost)
		wantEnded(t, outer, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantNowhere(t, servers, "k")
	})
}

func TestRedlock_RefreshLeaveHandover(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		clients := process(t, servers)
		lock := core.Redlock("k", clients...)
		ctx, hold := acquired(t, t.Context(), lock, core.LeaseTime(10*time.Second))
		servers[0].srv.Expire("k")
		must(t, hold.Refresh(t.Context(), time.Minute))
		if left := hold.Remaining(); left < 59*time.Second {
			t.Errorf("remaining: %s", left)
		}
		moved, next := hold.Handover()
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		pass(30 * time.Second)
		wantAlive(t, moved)
		inner, second := acquired(t, moved, lock, core.WaitTime(0))
		wantErr(t, next.Leave(t.Context(), time.Second), core.ErrInvalid)
		released(t, second)
		wantEnded(t, inner, core.ErrReleased)
		must(t, next.Leave(t.Context(), 5*time.Second))
		wantEnded(t, moved, core.ErrReleased)
		wantHeldOn(t, servers, "k", 2)
		_, _, err := lock.Acquire(ctx, core.WaitTime(time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		pass(5 * time.Second)
		wantHeldOn(t, servers, "k", 0)
	})
}

// A refresh that a majority does not confirm is no success.
func TestRedlock_RefreshNeedsAMajority(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		ctx, hold := acquired(t, t.Context(), core.Redlock("k", process(t, servers)...), core.LeaseTime(10*time.Second))
		down(servers[0])
		must(t, hold.Refresh(t.Context(), time.Minute))
		down(servers[1])
		wantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrUnavailable)
		wantAlive(t, ctx)
		<-ctx.Done()
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// Two that leave at once, whose clients are in another order, do not block each other.
func TestRedlock_LeavesInAnyOrder(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		clients := process(t, servers)
		reversed := slices.Clone(clients)
		slices.Reverse(reversed)
		for range 200 {
			ctx, outer := acquired(t, t.Context(), core.Redlock("k", clients...))
			_, inner := acquired(t, ctx, core.Redlock("k", reversed...))
			eachOf(2, func(i int) { _ = []*core.Hold{outer, inner}[i].Leave(t.Context(), time.Millisecond) })
			_ = inner.Release(t.Context())
			_ = outer.Release(t.Context())
			pass(2 * time.Millisecond)
		}
		wantNowhere(t, servers, "k")
	})
}

// The client of one server is closed: that part ends, the others go on.
func TestRedlock_OneClientIsClosed(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		clients := process(t, servers)
		ctx, hold := acquired(t, t.Context(), core.Redlock("k", clients...))
		wantSame(t, "holds of the last client", len(clients[2].Holds()), 1)
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, clients[2].Close(ended), core.ErrClosed)
		pass(time.Hour)
		wantAlive(t, ctx)
		wantErr(t, clients[1].Close(ended), core.ErrClosed)
		wantEnded(t, ctx, core.ErrClosed)
		wantErr(t, hold.Release(t.Context()), core.ErrClosed)
		servers[0].wantGone("k")
	})
}

// The observers of the first client are notified of one lock, also where its server is dead.
func TestRedlock_Observers(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		told, others, backend := newRecorder(), newRecorder(), &backendRecorder{}
		clients := append(process(t, servers[:1], core.WithObserver(told.observer(), backend.observer())), process(t, servers[1:], core.WithObserver(others.observer()))...)
		down(servers[0])
		ctx, hold := acquired(t, t.Context(), core.Redlock("k", clients...), core.Label("l"))
		end := told.first(t, "acquire end").data.(core.AcquireResult)
		if end.Kind != core.KindRedlock || end.Keys != 1 || end.Key != "k" || end.Label != "l" || end.Field != hold.Field() ||
			end.Outcome != core.OutcomeAcquired || end.Attempts < 2 || end.Contended || end.RoundTrip < 0 {
			t.Errorf("told of %+v", end)
		}
		info := told.first(t, "hold start").data.(core.HoldInfo)
		if info.Kind != core.KindRedlock || info.Keys != 1 || !info.Watchdog {
			t.Errorf("told of %+v", info)
		}
		pass(15 * time.Second)
		wantSame(t, "renewals", told.count("renewal"), 2)
		_, inner := acquired(t, ctx, core.Redlock("k", clients...))
		released(t, inner)
		released(t, hold)
		wantSame(t, "ends", told.count("hold end"), 2)
		if names := others.names(); len(names) != 0 {
			t.Errorf("the others are told of %v", names)
		}
		if changes := backend.all(); len(changes) != 1 || changes[0].ClientID != clients[0].ID() {
			t.Errorf("the client of the dead server is told of %v", changes)
		}
	})
}
