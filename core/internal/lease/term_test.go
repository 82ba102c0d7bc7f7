package lease_test

import (
	"testing"
	"time"
)

func TestLease_AcknowledgeCountsFromTheSending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", 10*time.Second)
		pass(5 * time.Second)
		h.Acknowledge(after(-time.Second), 10*time.Second)
		wantLeft(t, h, 9*time.Second-margin(10*time.Second))
		h.Acknowledge(time.Now(), 2*time.Second) // never lower
		wantLeft(t, h, 9*time.Second-margin(10*time.Second))
		pass(8 * time.Second) // and the scheduler knows
		wantHeld(t, h)
		pass(time.Second)
		wantLost(t, h, errOver)
	})
}

// A reply that comes after the deadline is no success, even before anybody has noticed.
func TestLease_AcknowledgeAfterTheDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.opened("k", time.Second) // nobody watches it
		pass(time.Second)
		h.Acknowledge(time.Now(), time.Hour)
		if !h.Expired(time.Now()) {
			t.Errorf("%s are left", h.Left(time.Now()))
		}
	})
}

// The local deadline is lowered before the command goes out, and the scheduler knows.
func TestLease_Lower(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		if !h.Lower(time.Now(), time.Second) {
			t.Error("not lowered")
		}
		wantLeft(t, h, time.Second-margin(time.Second))
		if !h.Lower(time.Now(), time.Minute) {
			t.Error("not lowered")
		}
		wantLeft(t, h, time.Second-margin(time.Second)) // only a reply raises it
		pass(time.Second)
		wantLost(t, h, errOver)
		if h.Lower(time.Now(), time.Second) {
			t.Error("lowered after the loss")
		}
	})
}

// A command that may land would raise the TTL again.
func TestLease_LowerWaitsForCommandsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		if !h.Landing().IsZero() {
			t.Errorf("something may land until %s", h.Landing())
		}
		h.Unanswered()
		if want := after(landing); !h.Landing().Equal(want) {
			t.Errorf("may land until %s, want %s", h.Landing(), want)
		}
		pass(landing - time.Nanosecond)
		if h.Lower(time.Now(), time.Second) {
			t.Error("lowered")
		}
		wantLeft(t, h, time.Hour-margin(time.Hour)-landing+time.Nanosecond)
		pass(time.Nanosecond)
		if !h.Lower(time.Now(), time.Second) {
			t.Error("not lowered")
		}
	})
}

func TestLease_BelieveAtMost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", 10*time.Second)
		h.BelieveAtMost(20 * time.Second)
		h.BelieveAtMost(time.Minute) // the lower one stays
		h.Acknowledge(time.Now(), time.Hour)
		wantLeft(t, h, 20*time.Second-margin(20*time.Second))
		h.BelieveAtMost(time.Second)
		h.Acknowledge(after(0), time.Hour)
		wantLeft(t, h, 20*time.Second-margin(20*time.Second)) // what was confirmed is
	})
}

func TestLease_LongestTTLAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", 10*time.Second)
		for _, c := range []struct{ ask, want time.Duration }{
			{time.Second, 10 * time.Second},
			{time.Minute, time.Minute},
			{time.Second, time.Minute},
		} {
			if h.Ask(c.ask); h.Longest() != c.want {
				t.Errorf("after %s: got %s, want %s", c.ask, h.Longest(), c.want)
			}
		}
	})
}

// What was prepared to be lowered is lower when Redis has said so. Until then, and if the
// lease was raised by another command since, Redis may have what it had.
func TestLease_LongestIsLoweredByTheReply(t *testing.T) {
	t.Parallel()
	lower := func(h *holding, ttl time.Duration) { h.Lower(time.Now(), ttl) }
	acknowledge := func(h *holding, ttl time.Duration) { h.Acknowledge(time.Now(), ttl) }
	ask := func(h *holding, ttl time.Duration) { h.Ask(ttl) }
	type step struct {
		do   func(h *holding, ttl time.Duration)
		ttl  time.Duration
		want time.Duration
	}
	for name, steps := range map[string][]step{
		"lowered":               {{lower, time.Minute, time.Hour}, {acknowledge, time.Minute, time.Minute}},
		"raised by it":          {{lower, 2 * time.Hour, 2 * time.Hour}, {acknowledge, 2 * time.Hour, 2 * time.Hour}},
		"at the second attempt": {{lower, time.Minute, time.Hour}, {lower, 2 * time.Minute, time.Hour}, {acknowledge, 2 * time.Minute, 2 * time.Minute}},
		"raised by another":     {{lower, time.Minute, time.Hour}, {ask, time.Second, time.Hour}, {acknowledge, time.Second, time.Hour}},
		"confirmed without it":  {{acknowledge, time.Minute, time.Hour}},
		"once":                  {{lower, time.Minute, time.Hour}, {acknowledge, time.Minute, time.Minute}, {ask, time.Hour, time.Hour}, {acknowledge, time.Minute, time.Hour}},
		"after it was lost":     {{lower, time.Minute, time.Hour}, {func(h *holding, _ time.Duration) { h.Lose(errGone) }, 0, time.Hour}, {acknowledge, time.Minute, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				h := b.held("k", time.Hour)
				for i, s := range steps {
					if s.do(h, s.ttl); h.Longest() != s.want {
						t.Errorf("step %d: got %s, want %s", i, h.Longest(), s.want)
					}
				}
			})
		})
	}
}

// A renewal on the wire when the TTL was lowered confirms nothing about that.
func TestLease_LongestIsNotLoweredByARenewal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		h.Renew(time.Now())
		h.Lower(time.Now(), ttl)
		pass(time.Minute)
		wantHeld(t, h)
		if got := h.Longest(); got != time.Hour {
			t.Errorf("got %s", got)
		}
	})
}
