package reaper_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
)

// The reaper clears up a field in Redis within milliseconds and wakes the waiters.
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
		b.wantLocks(t, "k2", "other") // another holder has it
	})
}

// A field that Redis does not have yet is not settled while Redis may still execute its command. The reaper
// clears up after a late command within about a second.
func TestReaper_Abandon_LandsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.abandon("a", "k")
		pass(10*time.Second + reaper.SettleTime - 2*time.Second)
		b.land("a", "k")
		if !b.IsOrphan("a") || b.IsOrphan("b") {
			t.Errorf("orphaned a: %t, b: %t", b.IsOrphan("a"), b.IsOrphan("b"))
		}
		pass(reaper.LongestAsk + time.Millisecond)
		b.wantCleared("k")
		b.wantKept(reaper.KeptNothing)
		if b.IsOrphan("a") {
			t.Error("a still counts as orphaned")
		}
	})
}

// When Redis can no longer execute any command, the reaper asks nothing and keeps nothing.
func TestReaper_Abandon_Ends(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for i := range 500 {
			b.abandon(fmt.Sprint("f", i), fmt.Sprint("k", i%10))
		}
		pass(10*time.Second + reaper.SettleTime)
		if len(b.questions()) == 0 {
			t.Error("no question was sent")
		}
		pass(5 * time.Second)
		b.questions()
		b.wantKept(reaper.KeptNothing)
		pass(time.Minute)
		wantSame(t, "questions when nothing can land any more", len(b.questions()), 0)
	})
}

// The reaper starts again after it had nothing to do.
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

// A relinquished field cannot come back, so the reaper settles it when Redis does not have it.
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

// If Redis does not answer, the reaper asks again, but not after the time at which no field can be left.
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

// If one key has the field of a command, Redis has executed the command for all of its keys.
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

// A question names the newest of many orphans of a key. If Redis has an older orphan, the next question names
// it at once.
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

// If a late answer shows that Redis changed nothing, there are no more questions. After a late grant, one
// question is enough.
func TestReaper_LateAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome reaper.Outcome
		asked   int // the number of questions after that; 2 stands for many
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

// If the answer to the acquire arrives before the first question and Redis changed nothing, there is no
// question.
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
		b.looked = func(string) { b.Resume() } // the reaper also checks without its mutex whether a node is silent
		b.abandon("a", "k")
		pass(time.Second)
		b.wantCleared("k")
	})
}

// Close ends all goroutines, whatever they wait for.
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
		b.abandon("b", "k") // returns at once
	})
}
