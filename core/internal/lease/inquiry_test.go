package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

func TestLease_DoubtAsksRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says  redisstore.Verdict
		lost  bool
		again bool
	}{"there": {there, false, false}, "gone": {gone, true, false}, "no answer": {noAnswer, false, true}, "refused": {refused, false, true}} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			b.redis.say("k", c.says)
			h := b.held("k", time.Hour)
			before := h.Left(b.start)
			h.Doubt()
			pass(time.Second)
			calls := b.redis.calls()
			if len(calls) == 0 || calls[0].ttl != 0 || !calls[0].at.Equal(b.start) || len(calls) > 1 != c.again {
				t.Errorf("asked %v", calls)
			}
			if c.lost {
				wantLost(t, h, errGone)
			} else {
				wantHeld(t, h)
			}
			if h.Left(b.start) != before || len(h.renewals()) > 0 {
				t.Error("a question renews the lease")
			}
		})
	}
}

// The watchdog repeats a question that Redis refused or did not answer until Redis answers.
func TestLease_DoubtIsAskedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails  func(b *bed)
		answer redisstore.Verdict
	}{
		"refused, then gone":     {func(b *bed) { b.redis.say("k", refused) }, gone},
		"refused, then there":    {func(b *bed) { b.redis.say("k", refused) }, there},
		"no answer, then gone":   {func(b *bed) { b.redis.say("k", noAnswer) }, gone},
		"black hole, then gone":  {func(b *bed) { b.redis.delay("k", time.Hour) }, gone},
		"black hole, then there": {func(b *bed) { b.redis.delay("k", time.Hour) }, there},
	} {
		for _, outage := range []time.Duration{time.Millisecond, time.Second, time.Minute, 10 * time.Minute} {
			parallelBubble(t, name+", after "+outage.String(), func(t *testing.T, b *bed) {
				c.fails(b)
				h := b.held("k", time.Hour)
				h.Doubt()
				pass(outage)
				wantHeld(t, h)
				b.redis.say("k", c.answer)
				b.redis.delay("k", 0)
				pass(timeout + 5*time.Second)
				if c.answer == gone {
					wantLost(t, h, errGone)
				} else {
					wantHeld(t, h)
				}
				b.redis.calls()
				pass(10 * time.Minute)
				if n := len(b.redis.calls()); n > 0 {
					t.Errorf("%d questions after the answer", n)
				}
			})
		}
	}
}

// The pause after a failed question grows up to a limit and is jittered. Further doubts do not shorten it.
// After an answer it starts again at its minimum.
func TestLease_FailedQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		for range 2 {
			b.redis.say("k", refused)
			for range 6000 {
				h.Doubt()
				pass(10 * time.Millisecond)
			}
			var gaps []time.Duration
			calls := b.redis.calls()
			for i, c := range calls[1:] {
				gaps = append(gaps, c.at.Sub(calls[i].at))
			}
			if n := len(gaps); n < 12 || n > 30 {
				t.Errorf("%d questions in a minute: %s", n, gaps)
			}
			if gaps[0] > 100*time.Millisecond {
				t.Errorf("asked again after %s", gaps[0])
			}
			for i, gap := range gaps[1:] {
				if gap > 5*time.Second+time.Millisecond || gap < 3*time.Second && gap < gaps[i] {
					t.Errorf("asked again after %s, %d: %s", gap, i, gaps)
				}
			}
			b.redis.say("k", there)
			pass(10 * time.Second)
			b.redis.calls()
		}
		wantHeld(t, h)
	})
}

// If many leases are in doubt during an outage, a few questions at a time cover all of them. No lease needs a
// goroutine.
func TestLease_DoubtsOfManyTravelTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const leases = 1000
		holders := make([]*holding, leases)
		for i := range holders {
			holders[i] = b.held(fmt.Sprint("n/", i), time.Hour)
			b.redis.say(holders[i].Key, refused)
		}
		before := b.spawned()
		for i, h := range holders {
			h.Doubt()
			if i%50 == 0 {
				pass(10 * time.Millisecond)
			}
		}
		pass(time.Minute)
		calls := b.redis.calls()
		if n := b.spawned() - before; n > 2*len(calls) {
			t.Errorf("%d goroutines for %d calls", n, len(calls))
		}
		pass(time.Minute)
		if n := len(b.redis.calls()); n > 60 {
			t.Errorf("%d calls in the second minute", n)
		}
		for _, h := range holders {
			b.redis.say(h.Key, gone)
		}
		pass(6 * time.Second)
		for _, h := range holders {
			wantLost(t, h, errGone)
		}
	})
}

// The question about a lease that is not under watch yet is sent when the watch begins.
func TestLease_DoubtBeforeTheWatch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.redis.say("k", gone)
		h := b.opened("k", time.Hour)
		h.Doubt()
		pass(time.Second)
		h.Watch(time.Now())
		pass(time.Second)
		wantLost(t, h, errGone)
	})
}

// A flood of doubts causes one question at a time, at most one every 20 ms. A question that is sent after the
// last doubt covers all of them.
func TestLease_DoubtsAreBounded(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"at once": 0, "slowly": 150 * time.Millisecond} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			b.redis.delay("k", takes)
			h := b.held("k", time.Hour)
			var last time.Time
			for range 1000 {
				last = time.Now()
				h.Doubt()
				pass(time.Millisecond)
			}
			pass(time.Second)
			calls := b.redis.calls()
			for i, c := range calls[1:] {
				if gap := c.at.Sub(calls[i].at); gap < 15*time.Millisecond || gap < takes {
					t.Errorf("%s between two questions", gap)
				}
			}
			if n := len(calls); n < 2 || n > 70 {
				t.Errorf("%d questions", n)
			}
			if final := calls[len(calls)-1].at; final.Before(last) {
				t.Error("nothing was asked after the last doubt")
			}
			pass(time.Second)
			if n := len(b.redis.calls()); n > 0 {
				t.Errorf("%d questions without a doubt", n)
			}
		})
	}
}

// A question without an answer ends with its time limit.
func TestLease_DoubtGivesUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.redis.delay("k", time.Hour)
		h := b.held("k", time.Hour)
		h.Doubt()
		pass(timeout)
		h.Doubt()
		pass(timeout)
		wantSame(t, "questions", len(b.redis.calls()), 2)
		wantHeld(t, h)
	})
}

// Redis is not asked about a lease that has ended.
func TestLease_DoubtAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *holding){
		"released": func(h *holding) { _ = h.BeginRelease(); h.End() },
		"lost":     func(h *holding) { h.Lose(errGone) },
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			b.redis.delay("k", time.Second)
			h := b.held("k", time.Hour)
			h.Doubt()
			h.Doubt()
			pass(100 * time.Millisecond)
			end(h)
			pass(2 * time.Second)
			h.Doubt()
			pass(2 * time.Second)
			wantSame(t, "questions", len(b.redis.calls()), 1)
		})
	}
}

// Closing the client does not lose the lease.
func TestLease_DoubtAtTheEndOfTheClient(t *testing.T) {
	t.Parallel()
	h := &holding{}
	inBubbleThen(t, func(_ *testing.T, b *bed) {
		b.redis.delay("k", time.Second)
		b.redis.say("k", gone)
		b.Open(&h.Lease, redisstore.Claim{Key: "k", Field: "f"}, h, time.Now(), time.Hour)
		h.Watch(time.Now())
		h.Doubt()
		pass(time.Millisecond)
	}, func(t *testing.T) {
		if err := h.Loss(); err != nil || !h.Held() {
			t.Errorf("held %v, loss %v", h.Held(), err)
		}
		if errors.Is(h.Loss(), errGone) {
			t.Error("an interrupted question counts as answered")
		}
	})
}
