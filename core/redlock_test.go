package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

func TestRedlock_IsHeldOnAllServersAndFreedOnAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 5} {
		onIslands(t, n, func(t *testing.T, servers []*island) {
			clients := process(t, servers)
			lock := core.Redlock("k", clients...)
			ctx, hold := acquired(t, t.Context(), lock, core.WaitTime(0))
			wantHeldOn(t, servers, "k", n)
			for i, s := range servers {
				field := ""
				for f, count := range s.HGetAll(t.Context(), "k").Val() {
					if field = f; count != "1" {
						t.Errorf("server %d: count %s", i, count)
					}
				}
				if want := clients[i].ID() + ":"; len(field) <= len(want) || field[:len(want)] != want {
					t.Errorf("server %d: holder %q, want %s…", i, field, want)
				}
			}
			if left := hold.Remaining(); left <= 29*time.Second || left > 30*time.Second-302*time.Millisecond {
				t.Errorf("remaining: %s, want the lease less its margin", left)
			}
			if got := hold.Keys(); len(got) != 1 || got[0] != "k" || hold.Key() != "k" || hold.Token() != 0 {
				t.Errorf("keys %v, key %s, token %d", got, hold.Key(), hold.Token())
			}
			if got, ok := core.Held(ctx, "k"); !ok || got != hold {
				t.Error("the context does not hold the lock")
			}
			released(t, hold)
			wantHeldOn(t, servers, "k", 0)
			wantEnded(t, ctx, core.ErrReleased)
			wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		})
	}
}

func TestRedlock_WrongArguments(t *testing.T) {
	t.Parallel()
	onIslands(t, 2, func(t *testing.T, servers []*island) {
		c := process(t, servers)
		for name, lock := range map[string]core.Lock{
			"no clients":     core.Redlock("k"),
			"nil client":     core.Redlock("k", nil),
			"nil among":      core.Redlock("k", c[0], nil),
			"a client twice": core.Redlock("k", c[0], c[1], c[0]),
			"empty name":     core.Redlock("", c...),
		} {
			_, hold, err := lock.Acquire(t.Context())
			wantErr(t, err, core.ErrInvalid)
			wantErr(t, lock.Do(t.Context(), nil), core.ErrInvalid)
			_, err = lock.State(t.Context())
			wantErr(t, err, core.ErrInvalid)
			_, err = lock.ForceRelease(t.Context())
			wantErr(t, err, core.ErrInvalid)
			if hold != nil || t.Failed() {
				t.Fatal(name)
			}
		}
		_, _, err := core.Redlock("k", c...).Acquire(t.Context(), core.WaitTime(-1))
		wantErr(t, err, core.ErrInvalid)
		wantHeldOn(t, servers, "k", 0)
	})
}

// However long it has waited, its lease counts from the attempt that was granted.
func TestRedlock_AWaitLongerThanTheLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lease time.Duration
		opts  []core.AcquireOption
	}{
		"watchdog":      {30 * time.Second, nil},
		"a lease":       {10 * time.Second, []core.AcquireOption{core.LeaseTime(10 * time.Second)}},
		"a wait time":   {30 * time.Second, []core.AcquireOption{core.WaitTime(time.Minute)}},
		"a short lease": {time.Second, []core.AcquireOption{core.LeaseTime(time.Second), core.WaitTime(time.Minute)}},
	} {
		parallelIslands(t, name, 3, func(t *testing.T, servers []*island) {
			first, second := core.Redlock("k", process(t, servers)...), core.Redlock("k", process(t, servers)...)
			_, holder := acquired(t, t.Context(), first)
			time.AfterFunc(33*time.Second, func() { _ = holder.Release(context.Background()) })
			start := time.Now()
			ctx, hold := acquired(t, t.Context(), second, tt.opts...)
			if took := time.Since(start); took < 33*time.Second || took > 34*time.Second {
				t.Errorf("acquired after %s", took)
			}
			if left := hold.Remaining(); left < tt.lease-tt.lease/20 {
				t.Errorf("%s of a lease of %s remain", left, tt.lease)
			}
			wantAlive(t, ctx)
			released(t, hold)
			wantNowhere(t, servers, "k")
		})
	}
}

// Of five servers two may be dead: that costs one timeout, and nothing once it is known.
func TestRedlock_AMinorityMayBeDead(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*island){
		"refuses":     func(s *island) { s.srv.Down() },
		"black hole":  func(s *island) { s.proxy.BlackHole(true) },
		"wrong type":  func(s *island) { s.Set(context.Background(), "k", "text", 0) },
		"not serving": func(s *island) { s.proxy.AnswerError(scripts, "LOADING Redis is loading the dataset in memory") },
	} {
		parallelIslands(t, name, 5, func(t *testing.T, servers []*island) {
			lock := core.Redlock("k", process(t, servers)...)
			must(t, lock.Do(t.Context(), func(context.Context) error { return nil })) // connected
			kill(servers[0])
			kill(servers[3])
			for round := range 3 {
				start := time.Now()
				ctx, hold := acquired(t, t.Context(), lock, core.WaitTime(0))
				if took, most := time.Since(start), 2*time.Second; took > most || round > 0 && took > 20*time.Millisecond {
					t.Errorf("round %d took %s", round, took)
				}
				if left := hold.Remaining(); left > 30*time.Second-time.Since(start) {
					t.Errorf("remaining: %s after %s", left, time.Since(start))
				}
				wantAlive(t, ctx)
				released(t, hold)
			}
			for _, i := range []int{1, 2, 4} {
				servers[i].wantGone("k")
			}
		})
	}
}

// Without a majority that can answer the lock is neither acquired nor taken, whatever the others
// say, and nothing is left.
func TestRedlock_WithoutAMajorityIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.AcquireOption{
		"one attempt": {core.WaitTime(0)}, "a while": {core.WaitTime(20 * time.Second)}, "for ever": nil,
	} {
		for _, taken := range []bool{false, true} {
			parallelIslands(t, name, 5, func(t *testing.T, servers []*island) {
				lock := core.Redlock("k", process(t, servers)...)
				down(servers[:3]...)
				want := 0
				if taken {
					servers[3].srv.Take("k", time.Hour)
					servers[4].srv.Take("k", time.Hour)
					want = 2
				}
				start := time.Now()
				_, _, err := lock.Acquire(t.Context(), opts...)
				wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
				wantSoon(t, "took %s", start, 3*time.Second)
				pass(time.Second)
				for _, s := range servers[:3] {
					s.srv.Up()
				}
				pass(30 * time.Second)
				wantHeldOn(t, servers, "k", want)
			})
		}
	}
}

// Where a majority answers, and others have the lock, it is taken; what was granted is given
// back.
func TestRedlock_TakenByOthers(t *testing.T) {
	t.Parallel()
	onIslands(t, 5, func(t *testing.T, servers []*island) {
		told := newRecorder()
		lock := core.Redlock("k", process(t, servers, core.WithObserver(told.observer()))...)
		for _, s := range servers[1:4] {
			s.srv.Take("k", time.Hour)
		}
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			start := time.Now()
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
			wantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
			var busy *core.NotAcquiredError
			if errors.As(err, &busy); busy == nil || busy.BlockedBy == "" || busy.RetryAfter < 59*time.Minute {
				t.Errorf("busy: %+v", busy)
			}
			if took := time.Since(start); took < wait || took > wait+100*time.Millisecond {
				t.Errorf("took %s, want %s", took, wait)
			}
			wantHeldOn(t, servers, "k", 3)
		}
		if n := told.count("contention"); n != 2 {
			t.Errorf("%d contentions in %v", n, told.names())
		}
		if n := told.count("acquire end"); n != 2 {
			t.Errorf("%d ends in %v", n, told.names())
		}
		servers[0].srv.Take("k", time.Hour)
		servers[0].srv.Free("k")
		wantHeldOn(t, servers, "k", 3)
	})
}

// A minority of strangers is in nobody's way.
func TestRedlock_StrangersOnAMinority(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		lock := core.Redlock("k", process(t, servers)...)
		servers[0].srv.Take("k", time.Hour)
		start := time.Now()
		_, hold := acquired(t, t.Context(), lock)
		wantSoon(t, "took %s", start, 10*time.Millisecond)
		released(t, hold)
		wantHeldOn(t, servers, "k", 1)
	})
}

// A waiter is woken by the release of another process, at once.
func TestRedlock_WaiterIsWoken(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{false, true} {
		onIslands(t, 5, func(t *testing.T, servers []*island) {
			mine := process(t, servers)
			theirs := mine
			if !same {
				theirs = process(t, servers)
			}
			_, first := acquired(t, t.Context(), core.Redlock("k", theirs...))
			got := acquiring(t.Context(), core.Redlock("k", mine...), core.WaitTime(time.Minute))
			pass(10*time.Second + 123*time.Millisecond)
			freed := time.Now()
			released(t, first)
			o := <-got
			must(t, o.err)
			if took := time.Since(freed); took > 50*time.Millisecond {
				t.Errorf("same process %v: took %s after the release", same, took)
			}
			if n := held(servers, "k"); n < 3 { // on some the release may still be on its way when they are asked
				t.Errorf("k is on %d servers, want a majority", n)
			}
			released(t, o.hold)
			wantHeldOn(t, servers, "k", 0)
		})
	}
}

// A stranger who stays on one server is waited behind there only as long as the others are
// taken, too.
func TestRedlock_WaitingAtOneServerIsNotForThatOne(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		for _, s := range servers {
			s.srv.Take("k", time.Hour)
		}
		got := acquiring(t.Context(), core.Redlock("k", process(t, servers)...), core.WaitTime(time.Minute))
		pass(5 * time.Second)
		freed := time.Now()
		servers[1].srv.Free("k")
		servers[2].srv.Free("k")
		o := <-got
		must(t, o.err)
		wantSoon(t, "took %s", freed, 1500*time.Millisecond)
		released(t, o.hold)
	})
}

func TestRedlock_WaitEndsWithTheContextOrAClient(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		for _, s := range servers {
			s.srv.Take("k", time.Hour)
		}
		clients := process(t, servers)
		lock := core.Redlock("k", clients...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := lock.Acquire(ctx)
		wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		wantSame(t, "took", time.Since(start), 2*time.Second)
		for i, c := range clients {
			got := acquiring(t.Context(), core.Redlock("k", clients[i:]...))
			pass(3 * time.Second)
			start := time.Now()
			must(t, c.Close(t.Context()))
			o := <-got
			wantOnly(t, o.err, core.ErrClosed, core.ErrNotAcquired)
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("client %d: closed after %s", i, took)
			}
			_, _, err = lock.Acquire(t.Context())
			wantErr(t, err, core.ErrClosed)
		}
		wantHeldOn(t, servers, "k", 3)
	})
}

// A round that fails clears up servers that have not answered, too, when they come back.
func TestRedlock_FailedRoundLeavesNothing(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		lock := core.Redlock("k", process(t, servers)...)
		must(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
		var holes []*faultproxy.Rule
		for _, s := range servers[:2] {
			holes = append(holes, s.proxy.HoldReply(scripts))
		}
		_, _, err := lock.Acquire(t.Context(), core.WaitTime(0))
		wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		servers[2].wantGone("k")
		for _, h := range holes {
			h.Release()
			h.Remove()
		}
		pass(5 * time.Second)
		wantHeldOn(t, servers, "k", 0)
	})
}

// Servers that answer slowly leave less of the lease, or too little.
func TestRedlock_SlowServersCostValidity(t *testing.T) {
	t.Parallel()
	onIslands(t, 3, func(t *testing.T, servers []*island) {
		lock := core.Redlock("k", process(t, servers)...)
		must(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
		for _, s := range servers {
			s.proxy.DelayReply(scripts, 200*time.Millisecond)
		}
		_, hold := acquired(t, t.Context(), lock, core.LeaseTime(time.Second), core.WaitTime(0))
		if left := hold.Remaining(); left > 788*time.Millisecond || left < 700*time.Millisecond {
			t.Errorf("remaining: %s", left)
		}
		released(t, hold)
		_, _, err := lock.Acquire(t.Context(), core.LeaseTime(100*time.Millisecond), core.WaitTime(0))
		wantErr(t, err, core.ErrUnavailable)
		wantNowhere(t, servers, "k")
	})
}
