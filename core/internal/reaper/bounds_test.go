package reaper_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
)

// However many orphans there are and however slow Redis is, the reaper sends few questions at a time and per
// second. Each question names as many keys as allowed.
func TestReaper_Bounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		keys, each, most int
		takes            time.Duration
		least            int // the least number of questions in a second
	}{
		{1, 5000, 64, 0, 1},
		{5000, 1, 64, 0, 70},
		{5000, 1, 1, 0, 390},
		{5000, 1, 1, 50 * time.Millisecond, 8 * 19},
		{100, 100, 64, time.Millisecond, 2},
	} {
		t.Run(fmt.Sprintf("%dx%d by %d in %s", tt.keys, tt.each, tt.most, tt.takes), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.most, b.takes = tt.most, tt.takes
				for i := range tt.keys * tt.each {
					b.abandon(fmt.Sprint("f", i), fmt.Sprint("k", i%tt.keys))
				}
				for range 3 {
					pass(time.Second)
					b.wantBounded(tt.least)
				}
			})
		})
	}
}

func (b *bed) wantBounded(least int) {
	b.t.Helper()
	asked := b.questions()
	if len(asked) < least || len(asked) > 401 {
		b.t.Errorf("%d questions in a second, want between %d and 400", len(asked), least)
	}
	for i, q := range asked {
		if len(q.list) == 0 || len(q.list) > b.most {
			b.t.Errorf("a question about %d keys, want at most %d", len(q.list), b.most)
		}
		if i > 0 && q.at.Sub(asked[i-1].at) < reaper.AskEvery {
			b.t.Errorf("two questions within %s", q.at.Sub(asked[i-1].at))
		}
	}
	if n := b.atOnce(); n > reaper.MaxAsking {
		b.t.Errorf("%d questions at a time", n)
	}
}

// The reaper asks about a key soon at first and then less and less often, down to once a second. A new orphan
// of the key resets the pause.
func TestReaper_Pace(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 2 {
			last := time.Now()
			b.abandon("a", "k")
			pass(4 * time.Second)
			asked := b.questions()
			b.passUntilAsked()
			for i, ms := range []int{5, 20, 80, 320, 1000, 1000} {
				want := time.Duration(ms) * time.Millisecond
				d := asked[i].at.Sub(last)
				if d < want*3/4 || d > want {
					t.Errorf("question %d after %s, want a time in the last quarter of %s", i, d, want)
				}
				last = asked[i].at
			}
		}
	})
}

// passUntilAsked returns just after a question, so that the next one is not due soon.
func (b *bed) passUntilAsked() {
	b.t.Helper()
	for range time.Second / time.Millisecond { // the longest pause
		pass(time.Millisecond)
		if len(b.questions()) > 0 {
			return
		}
	}
	b.t.Fatal("no question within a second")
}

// Orphans beyond a limit are left to their leases, so that the memory is bounded. There is room for new ones
// when others are settled.
func TestReaper_Full(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.hush(true, "k")
		for range reaper.MaxOrphans {
			b.Relinquish(nil, []string{"k"}, "a", time.Second)
		}
		b.abandon("b", "other")
		pass(time.Second)
		wantSame(t, "questions about what is beyond the limit", len(b.questions()), 0)
		b.hush(false, "k")
		b.Resume()
		pass(time.Second)
		b.wantKept(reaper.KeptNothing)
		b.land("b", "other")
		b.abandon("b", "other")
		pass(10 * time.Millisecond)
		b.wantCleared("other")
	})
}

// The reaper remembers the last few settled orphans that were in Redis, and no others.
func TestReaper_WasOrphan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.abandon("never", "k")
		for i := range 2 * reaper.MaxPast {
			field := fmt.Sprint("f", i)
			b.land(field, "k")
			b.abandon(field, "k")
			pass(2 * reaper.LongestAsk)
		}
		pass(reaper.SettleTime + time.Minute)
		for field, want := range map[string]bool{
			"never": false, "f0": false, fmt.Sprint("f", reaper.MaxPast-1): false,
			fmt.Sprint("f", reaper.MaxPast): true, fmt.Sprint("f", 2*reaper.MaxPast-1): true,
		} {
			if got := b.WasOrphan(field); got != want {
				t.Errorf("%s: got %t, want %t", field, got, want)
			}
		}
		b.wantKept(reaper.KeptNothing)
	})
}

// A silent node gets no question until it answers again. Then it gets one at once. Other nodes are not
// affected.
func TestReaper_Silent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.land("a", "k1", "k2")
		b.hush(true, "k1")
		b.abandon("a", "k1")
		b.abandon("a", "k2")
		pass(time.Minute)
		b.wantCleared("k2")
		for _, q := range b.questions() {
			if q.names("k1") {
				t.Fatal("asked although its node is silent")
			}
		}
		b.abandon("b", "k1") // it is parked with the other orphan
		pass(time.Second)
		b.hush(false, "k1")
		b.Resume()
		synctest.Wait()
		b.wantCleared("k2", "k1")
		b.wantKept("1 orphans of 1 fields in 1 keys, 1 due, 0 parked, 0 asked about, running: true")
	})
}

// If a node answers again at the moment at which the reaper finds it silent, its orphans are not forgotten.
func TestReaper_Resume_WhileParking(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.land("a", "k")
		b.hush(true, "k")
		looks := 0
		b.looked = func(string) {
			if looks++; looks == 2 {
				b.hush(false, "k")
			} else {
				b.Resume()
			}
		}
		b.abandon("a", "k")
		pass(10 * time.Millisecond)
		b.wantCleared("k")
	})
}

// If one key makes Redis reject a whole question, the other keys are not affected. The reaper asks about that
// key separately until it gets an answer.
func TestReaper_ForbiddenKey(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		forbidden := true
		b.fails = func(key string) failure {
			if key == "k1" && forbidden {
				return rejected
			}
			return fine
		}
		b.land("a", "k0", "k1", "k2")
		b.abandon("a", "k0", "k1", "k2")
		pass(2 * time.Second)
		b.wantLocks(t, "k0")
		b.wantLocks(t, "k2")
		b.wantLocks(t, "k1", "a")
		b.questions()
		b.abandon("b", "k3")
		pass(2 * time.Second)
		for _, q := range b.questions() {
			if q.names("k1") && len(q.list) > 1 {
				t.Errorf("asked about with others: %v", q.list)
			}
		}
		b.mu.Lock()
		forbidden = false
		b.mu.Unlock()
		pass(2 * time.Second)
		b.wantLocks(t, "k1")
	})
}

// Redis returns an error for one key. The reaper uses the answers about the others.
func TestReaper_OneFindingIsAnError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.fails = func(key string) failure {
			if key == "k1" {
				return broken
			}
			return fine
		}
		b.land("a", "k1", "k2")
		b.abandon("a", "k1")
		b.abandon("a", "k2")
		pass(time.Second)
		b.wantCleared("k2")
		b.wantLocks(t, "k1", "a")
	})
}

// Drain waits until Redis has answered once about each orphan, found or not.
func TestReaper_Drain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.takes = 100 * time.Millisecond
		b.abandon("a", "k1", "k2")
		b.Relinquish(nil, []string{"k3"}, "b", time.Second)
		start := time.Now()
		b.Drain(t.Context())
		if d := time.Since(start); d < 100*time.Millisecond || d > 120*time.Millisecond {
			t.Errorf("Drain took %s, want the time of one question", d)
		}
		b.abandon("c", "k4") // it is cleared up, but Drain does not wait for it
		start = time.Now()
		b.Drain(t.Context())
		wantSame(t, "the second took", time.Since(start), 0)
		b.land("c", "k4")
		pass(time.Second)
		b.wantCleared("k4")
	})
}

func TestReaper_Drain_Nothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		start := time.Now()
		b.Drain(t.Context())
		wantSame(t, "it took", time.Since(start), 0)
	})
}

// Redis may execute a pending acquire after the question. Drain waits until the answer to the acquire
// arrives, or until its time limit.
func TestReaper_Drain_PendingCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		comes time.Duration
		want  time.Duration
	}{"its answer comes": {time.Second, time.Second}, "the time is up": {time.Hour, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				call := &late{}
				b.Abandon(nil, []string{"k"}, "a", call, time.Second)
				answers := time.AfterFunc(tt.comes, func() { call.comes(reaper.Unknown) })
				defer answers.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				start := time.Now()
				b.Drain(ctx)
				if d := time.Since(start); d < tt.want || d > tt.want+reaper.LongestAsk {
					t.Errorf("Drain took %s, want %s", d, tt.want)
				}
			})
		})
	}
}
