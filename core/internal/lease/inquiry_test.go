package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

func TestLease_DoubtAsksRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says redisstore.Verdict
		lost bool
	}{"there": {there, false}, "gone": {gone, true}, "no answer": {noAnswer, false}, "refused": {refused, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.redis.say("k", c.says)
				h := b.held("k", time.Hour)
				before := h.Left(b.start)
				h.Doubt()
				pass(time.Second)
				calls := b.redis.calls()
				if len(calls) != 1 || calls[0].ttl != 0 || !calls[0].at.Equal(b.start) {
					t.Errorf("asked %v", calls)
				}
				if c.lost {
					wantLost(t, h, errGone)
				} else {
					wantHeld(t, h)
				}
				if h.Left(b.start) != before || len(h.told()) > 0 {
					t.Error("a question is no renewal")
				}
			})
		})
	}
}

// A flood of doubts costs one question at a time, and one every 20 ms at most; the last
// doubt is answered by a question that was sent after it.
func TestLease_DoubtsAreBounded(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"at once": 0, "slowly": 150 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// A question that gets no answer takes its time, and no longer.
func TestLease_DoubtGivesUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.redis.delay("k", time.Hour)
		h := b.held("k", time.Hour)
		h.Doubt()
		pass(timeout)
		h.Doubt()
		pass(timeout)
		if n := len(b.redis.calls()); n != 2 {
			t.Errorf("%d questions", n)
		}
		wantHeld(t, h)
	})
}

// Nothing is asked about what is over.
func TestLease_DoubtAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *holding){
		"released": func(h *holding) { _ = h.BeginRelease(); h.End() },
		"lost":     func(h *holding) { h.Lose(errGone) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.redis.delay("k", time.Second)
				h := b.held("k", time.Hour)
				h.Doubt()
				h.Doubt()
				pass(100 * time.Millisecond)
				end(h)
				pass(2 * time.Second)
				h.Doubt()
				pass(2 * time.Second)
				if n := len(b.redis.calls()); n != 1 {
					t.Errorf("%d questions", n)
				}
			})
		})
	}
}

// The end of the client is not the end of the lease.
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
			t.Error("what was cut short is no answer")
		}
	})
}
