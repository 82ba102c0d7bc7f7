package kinds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestRedlock_AllServers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 5} {
		locktest.BubbleOf(t, n, func(t *testing.T, servers []*locktest.Redis) {
			clients := locktest.BehindEach(t, servers)
			lock := core.Redlock("k", clients...)
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.WaitTime(0))
			locktest.WantHeldOn(t, servers, "k", n)
			for i, s := range servers {
				field := ""
				for f, count := range s.HGetAll(t.Context(), "k").Val() {
					if field = f; count != "1" {
						t.Errorf("server %d: count %s, want 1", i, count)
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
			locktest.MustRelease(t, hold)
			locktest.WantHeldOn(t, servers, "k", 0)
			locktest.WantEnded(t, ctx, core.ErrReleased)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		})
	}
}

func TestRedlock_WrongArguments(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 2, func(t *testing.T, servers []*locktest.Redis) {
		c := locktest.BehindEach(t, servers)
		for name, lock := range map[string]core.Lock{
			"no clients":     core.Redlock("k"),
			"nil client":     core.Redlock("k", nil),
			"nil among":      core.Redlock("k", c[0], nil),
			"a client twice": core.Redlock("k", c[0], c[1], c[0]),
			"empty name":     core.Redlock("", c...),
		} {
			_, hold, err := lock.Acquire(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
			locktest.WantErr(t, lock.Do(t.Context(), nil), core.ErrInvalid)
			_, err = lock.State(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
			_, err = lock.ForceRelease(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
			if hold != nil || t.Failed() {
				t.Fatal(name)
			}
		}
		_, _, err := core.Redlock("k", c...).Acquire(t.Context(), core.WaitTime(-1))
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantHeldOn(t, servers, "k", 0)
	})
}

// However long a caller has waited, its lease counts from the attempt that was granted.
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
		locktest.ParallelBubbleOf(t, name, 3, func(t *testing.T, servers []*locktest.Redis) {
			first, second := core.Redlock("k", locktest.BehindEach(t, servers)...), core.Redlock("k", locktest.BehindEach(t, servers)...)
			_, holder := locktest.MustAcquire(t, t.Context(), first)
			time.AfterFunc(33*time.Second, func() { _ = holder.Release(context.Background()) })
			start := time.Now()
			ctx, hold := locktest.MustAcquire(t, t.Context(), second, tt.opts...)
			if took := time.Since(start); took < 33*time.Second || took > 34*time.Second {
				t.Errorf("acquired after %s, want 33s to 34s", took)
			}
			if left := hold.Remaining(); left < tt.lease-tt.lease/20 {
				t.Errorf("%s of a lease of %s remain", left, tt.lease)
			}
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)
			locktest.WantNowhere(t, servers, "k")
		})
	}
}

// Two of five servers may be dead. They delay the first acquisition by at most one timeout, and later acquisitions not
// at all.
func TestRedlock_AMinorityMayBeDead(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*locktest.Redis){
		"refuses":    func(s *locktest.Redis) { s.Embedded.Down() },
		"black hole": func(s *locktest.Redis) { locktest.Silent.Begin(s.Proxy) },
		"wrong type": func(s *locktest.Redis) { s.Set(context.Background(), "k", "text", 0) },
		"not serving": func(s *locktest.Redis) {
			s.Proxy.AnswerError(locktest.Scripts, "LOADING Redis is loading the dataset in memory")
		},
	} {
		locktest.ParallelBubbleOf(t, name, 5, func(t *testing.T, servers []*locktest.Redis) {
			lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
			locktest.Must(t, lock.Do(t.Context(), func(context.Context) error { return nil })) // connected
			kill(servers[0])
			kill(servers[3])
			for round := range 3 {
				start := time.Now()
				ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.WaitTime(0))
				if took, most := time.Since(start), 2*time.Second; took > most || round > 0 && took > 20*time.Millisecond {
					t.Errorf("round %d took %s", round, took)
				}
				if left := hold.Remaining(); left > 30*time.Second-time.Since(start) {
					t.Errorf("remaining: %s after %s", left, time.Since(start))
				}
				locktest.WantAlive(t, ctx)
				locktest.MustRelease(t, hold)
			}
			for _, i := range []int{1, 2, 4} {
				servers[i].WantGone("k")
			}
		})
	}
}

// Without a majority of servers that answer, the lock is neither acquired nor taken, and nothing is left.
func TestRedlock_WithoutAMajorityIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.AcquireOption{
		"one attempt": {core.WaitTime(0)}, "a while": {core.WaitTime(20 * time.Second)}, "for ever": nil,
	} {
		for _, taken := range []bool{false, true} {
			locktest.ParallelBubbleOf(t, name, 5, func(t *testing.T, servers []*locktest.Redis) {
				lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
				locktest.TakeDown(servers[:3]...)
				want := 0
				if taken {
					servers[3].Embedded.Take("k", time.Hour)
					servers[4].Embedded.Take("k", time.Hour)
					want = 2
				}
				start := time.Now()
				_, _, err := lock.Acquire(t.Context(), opts...)
				locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
				locktest.WantSoon(t, "the call took %s", start, 3*time.Second)
				locktest.Pass(time.Second)
				for _, s := range servers[:3] {
					s.Embedded.Up()
				}
				locktest.Pass(30 * time.Second)
				locktest.WantHeldOn(t, servers, "k", want)
			})
		}
	}
}

// If a majority answers, and other clients have the lock, it is taken. Grants of the failed round are given back.
func TestRedlock_TakenByOthers(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 5, func(t *testing.T, servers []*locktest.Redis) {
		seen := &locktest.Recorder{}
		lock := core.Redlock("k", locktest.BehindEach(t, servers, core.WithObserver(seen.Observer()))...)
		for _, s := range servers[1:4] {
			s.Embedded.Take("k", time.Hour)
		}
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			start := time.Now()
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
			var busy *core.NotAcquiredError
			if errors.As(err, &busy); busy == nil || busy.BlockedBy == "" || busy.RetryAfter < 59*time.Minute {
				t.Errorf("got %+v, want a refusal by another holder for about an hour", busy)
			}
			if took := time.Since(start); took < wait || took > wait+100*time.Millisecond {
				t.Errorf("took %s, want %s", took, wait)
			}
			locktest.WantHeldOn(t, servers, "k", 3)
		}
		if n := seen.Count("contention"); n != 2 {
			t.Errorf("%d contentions, want 2: %v", n, seen.Names())
		}
		if n := seen.Count("acquire end"); n != 2 {
			t.Errorf("%d ends of acquisitions, want 2: %v", n, seen.Names())
		}
		servers[0].Embedded.Take("k", time.Hour)
		servers[0].Embedded.Free("k")
		locktest.WantHeldOn(t, servers, "k", 3)
	})
}

// Other holders on a minority of the servers do not exclude a caller.
func TestRedlock_StrangersOnAMinority(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
		servers[0].Embedded.Take("k", time.Hour)
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), lock)
		locktest.WantSoon(t, "the call took %s", start, 10*time.Millisecond)
		locktest.MustRelease(t, hold)
		locktest.WantHeldOn(t, servers, "k", 1)
	})
}

// The release of another process wakes a waiter at once.
func TestRedlock_WaiterIsWoken(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{false, true} {
		locktest.BubbleOf(t, 5, func(t *testing.T, servers []*locktest.Redis) {
			mine := locktest.BehindEach(t, servers)
			theirs := mine
			if !same {
				theirs = locktest.BehindEach(t, servers)
			}
			_, first := locktest.MustAcquire(t, t.Context(), core.Redlock("k", theirs...))
			got := locktest.GoAcquire(t.Context(), core.Redlock("k", mine...), core.WaitTime(time.Minute))
			locktest.Pass(10*time.Second + 123*time.Millisecond)
			freed := time.Now()
			locktest.MustRelease(t, first)
			o := locktest.Got(t, got)
			if took := time.Since(freed); took > 50*time.Millisecond {
				t.Errorf("same process %v: took %s after the release, want at most 50ms", same, took)
			}
			if n := locktest.HeldOn(servers, "k"); n < 3 { // the release may reach some servers after the attempt
				t.Errorf("k is on %d servers, want a majority", n)
			}
			locktest.MustRelease(t, o.Hold)
			locktest.WantHeldOn(t, servers, "k", 0)
		})
	}
}

// A caller waits for another holder on one server only while other servers are taken, too.
func TestRedlock_OneServerIsTaken(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		for _, s := range servers {
			s.Embedded.Take("k", time.Hour)
		}
		got := locktest.GoAcquire(t.Context(), core.Redlock("k", locktest.BehindEach(t, servers)...), core.WaitTime(time.Minute))
		locktest.Pass(5 * time.Second)
		freed := time.Now()
		servers[1].Embedded.Free("k")
		servers[2].Embedded.Free("k")
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "the waiter had the lock after %s", freed, 1500*time.Millisecond)
		locktest.MustRelease(t, o.Hold)
	})
}

func TestRedlock_WaitEndsWithTheContextOrAClient(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		for _, s := range servers {
			s.Embedded.Take("k", time.Hour)
		}
		clients := locktest.BehindEach(t, servers)
		lock := core.Redlock("k", clients...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := lock.Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		locktest.WantSame(t, "took", time.Since(start), 2*time.Second)
		for i, c := range clients {
			got := locktest.GoAcquire(t.Context(), core.Redlock("k", clients[i:]...))
			locktest.Pass(3 * time.Second)
			start := time.Now()
			locktest.Must(t, c.Close(t.Context()))
			o := <-got
			locktest.WantOnly(t, o.Err, core.ErrClosed, core.ErrNotAcquired)
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("client %d: closed after %s, want at most 300ms", i, took)
			}
			_, _, err = lock.Acquire(t.Context())
			locktest.WantErr(t, err, core.ErrClosed)
		}
		locktest.WantHeldOn(t, servers, "k", 3)
	})
}

// After a failed round, servers that have not answered are cleared up when they are back.
func TestRedlock_FailedRoundLeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
		locktest.Must(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
		var holes []*faultproxy.Rule
		for _, s := range servers[:2] {
			holes = append(holes, s.Proxy.HoldReply(locktest.Scripts))
		}
		_, _, err := lock.Acquire(t.Context(), core.WaitTime(0))
		locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		servers[2].WantGone("k")
		for _, h := range holes {
			h.Release()
			h.Remove()
		}
		locktest.Pass(5 * time.Second)
		locktest.WantHeldOn(t, servers, "k", 0)
	})
}

// If servers answer slowly, less of the lease is left. If too little is left, the acquisition fails.
func TestRedlock_SlowServersCostValidity(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
		locktest.Must(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
		for _, s := range servers {
			s.Proxy.DelayReply(locktest.Scripts, 200*time.Millisecond)
		}
		_, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Second), core.WaitTime(0))
		if left := hold.Remaining(); left > 788*time.Millisecond || left < 700*time.Millisecond {
			t.Errorf("remaining: %s, want 700ms to 788ms", left)
		}
		locktest.MustRelease(t, hold)
		_, _, err := lock.Acquire(t.Context(), core.LeaseTime(100*time.Millisecond), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrUnavailable)
		locktest.WantNowhere(t, servers, "k")
	})
}
