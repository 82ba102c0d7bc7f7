package reaper_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
)

// A field in Redis is cleared up within milliseconds, and its waiters are woken.
func TestReaper_Abandon_Landed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.land("a", "k")
		b.land("other", "k2")
		b.abandon("a", "k")
		b.abandon("b", "k2")
		pass(6 * time.Millisecond)
		b.wantCleared("k")
		b.wantLocks(t, "k")
		b.wantLocks(t, "k2", "other") // held by another holder
	})
}

// "Not there" settles nothing while the command may still land. A late command is cleared up within
// about a second.
func TestReaper_Abandon_LandsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.abandon("a", "k")
		pass(10*time.Second + reaper.SettleTime - 2*time.Second)
		b.land("a", "k")
		if !b.Orphaned("a") || b.Orphaned("b") {
			t.Errorf("orphaned a: %t, b: %t", b.Orphaned("a"), b.Orphaned("b"))
		}
		pass(reaper.LongestAsk + time.Millisecond)
		b.wantCleared("k")
		b.wantKept(reaper.KeptNothing)
		if b.Orphaned("a") {
			t.Error("a is cleared up still")
		}
	})
}

// When nothing can land any more, nothing is asked, and nothing is kept.
func TestReaper_Abandon_Ends(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for i := range 500 {
			b.abandon(fmt.Sprint("f", i), fmt.Sprint("k", i%10))
		}
		pass(10*time.Second + reaper.SettleTime)
		if len(b.questions()) == 0 {
			t.Error("nothing was asked")
		}
		pass(5 * time.Second)
		b.questions()
		b.wantKept(reaper.KeptNothing)
		pass(time.Minute)
		wantSame(t, "questions when nothing can land any more", len(b.questions()), 0)
	})
}

// The reaper works again after it had nothing to do.
func TestReaper_BeginsAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 3 {
			b.land("a", "k")
			b.abandon("a", "k")
			pass(10 * time.Millisecond)
			b.wantKept(reaper.KeptNothing)
		}
		b.wantCleared("k", "k", "k")
	})
}

// A field that was in Redis and cannot come back is gone when it is not there.
func TestReaper_Relinquish_AskedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.Relinquish(nil, []string{"k"}, "a", time.Hour)
		pass(time.Minute)
		wantSame(t, "questions", len(b.questions()), 1)
		b.wantCleared()
		b.wantKept(reaper.KeptNothing)
	})
}

// A Redis without answers is asked until it answers. When nothing can be left, it is not asked any
// more.
func TestReaper_Relinquish_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.fails = func(string) failure { return noAnswer }
		b.Relinquish(nil, []string{"k"}, "a", time.Second)
		pass(reaper.SettleTime)
		if n := len(b.questions()); n < 100 {
			t.Errorf("%d questions in two minutes", n)
		}
		pass(3 * time.Second)
		b.wantKept(reaper.KeptNothing)
	})
}

// A command that is found in one of its keys was executed for all of them.
func TestReaper_Abandon_SeveralKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.land("a", "k1", "k3") // k2 has expired since
		b.abandon("a", "k1", "k2", "k3")
		pass(50 * time.Millisecond)
		b.wantCleared("k1", "k3")
		b.wantKept(reaper.KeptNothing)
	})
}

// A question names the newest of many orphans of a key. An older orphan that is found there is named at
// once.
func TestReaper_Abandon_ManyInOneKey(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for i := range 1000 {
			b.abandon(fmt.Sprint("f", i), "k")
		}
		pass(5 * time.Second)
		b.questions()
		b.land("f0", "k")
		pass(reaper.LongestAsk + 3*reaper.AskEvery)
		b.wantCleared("k")
		b.wantLocks(t, "k")
		for _, q := range b.questions() {
			if n := len(q.list[0].Fields); n > 16 {
				t.Errorf("a question names %d fields", n)
			}
		}
	})
}

// A late answer settles as much as it can.
func TestReaper_LateAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome reaper.Outcome
		asked   int // questions after that, 2 for many
	}{
		"it has changed nothing": {reaper.Unchanged, 0},
		"it was granted":         {reaper.Granted, 1},
		"there will be none":     {reaper.Unknown, 2},
		"none so far":            {reaper.Pending, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				call := &late{}
				b.Abandon(nil, []string{"k1", "k2"}, "a", call, time.Second)
				pass(5 * time.Second)
				b.questions()
				call.comes(tt.outcome)
				pass(10 * time.Second)
				asked := 0
				for _, q := range b.questions() {
					if q.names("k1") {
						asked++
					}
				}
				if min(asked, 2) != tt.asked {
					t.Errorf("%d questions after the answer, want %d", asked, tt.asked)
				}
				if ended := b.Kept() == reaper.KeptNothing; ended != (tt.asked < 2) {
					t.Errorf("kept: %s", b.Kept())
				}
			})
		})
	}
}

// An answer before the first question saves it, if nothing was changed.
func TestReaper_LateAnswer_BeforeTheQuestion(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.Abandon(nil, []string{"k"}, "a", &late{outcome: reaper.Unchanged}, time.Second)
		pass(time.Minute)
		wantSame(t, "questions", len(b.questions()), 0)
		b.wantKept(reaper.KeptNothing)
	})
}

// The callback Cleared may leave another field to the reaper.
func TestReaper_ClearedMayAbandon(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.land("a", "k")
		b.looked = func(string) { b.Resume() } // nor is it asked under the mutex whether a node is silent
		b.abandon("a", "k")
		pass(time.Second)
		b.wantCleared("k")
	})
}

// When its owner closes, all its goroutines end, whatever they wait for.
func TestReaper_Close(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.takes, b.most = time.Hour, 1
		for i := range 20 {
			b.abandon("a", fmt.Sprint("k", i))
		}
		pass(time.Second)
		b.end()
		synctest.Wait()
		b.workers.Wait()
		b.abandon("b", "k") // does nothing and waits for nothing
	})
}
