package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

func TestLease_AcknowledgeCountsFromTheSending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", 10*time.Second)
		pass(5 * time.Second)
		h.Acknowledge(after(-time.Second), 10*time.Second)
		wantLeft(t, h, 9*time.Second-margin(10*time.Second))
		h.Acknowledge(time.Now(), 2*time.Second) // does not lower the deadline
		wantLeft(t, h, 9*time.Second-margin(10*time.Second))
		pass(8 * time.Second) // the scheduler uses the new deadline
		wantHeld(t, h)
		pass(time.Second)
		wantLost(t, h, errOver)
	})
}

// A reply after the deadline does not count, even if the loss has not been noticed yet.
func TestLease_AcknowledgeAfterTheDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.opened("k", time.Second) // it is not under watch
		pass(time.Second)
		h.Acknowledge(time.Now(), time.Hour)
		if !h.Expired(time.Now()) {
			t.Errorf("%s are left", h.Left(time.Now()))
		}
	})
}

// The local deadline is lowered before the command is sent, and the scheduler uses it.
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
			t.Error("a lost lease was lowered")
		}
	})
}

// Lowering waits for commands without an answer, because Redis may execute them later and raise the TTL
// again.
func TestLease_LowerWaitsForCommandsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		if !h.Landing().IsZero() {
			t.Errorf("commands may be executed until %s, want none", h.Landing())
		}
		h.RecordNoAnswer()
		if want := after(landing); !h.Landing().Equal(want) {
			t.Errorf("commands may be executed until %s, want %s", h.Landing(), want)
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
		h.LimitTrust(20 * time.Second)
		h.LimitTrust(time.Minute) // the lower limit stays
		h.Acknowledge(time.Now(), time.Hour)
		wantLeft(t, h, 20*time.Second-margin(20*time.Second))
		h.LimitTrust(time.Second)
		h.Acknowledge(after(0), time.Hour)
		wantLeft(t, h, 20*time.Second-margin(20*time.Second)) // the confirmed lease
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

// Only the reply to a command lowers the longest TTL. Before the reply, Redis may still have the longer TTL.
// The same is true if another command raised the lease in between.
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			h := b.held("k", time.Hour)
			for i, s := range steps {
				if s.do(h, s.ttl); h.Longest() != s.want {
					t.Errorf("step %d: got %s, want %s", i, h.Longest(), s.want)
				}
			}
		})
	}
}

// A renewal that was on its way when the TTL was lowered does not confirm the lower TTL.
func TestLease_LongestIsNotLoweredByARenewal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		h.Renew(time.Now())
		h.Lower(time.Now(), ttl)
		pass(time.Minute)
		wantHeld(t, h)
		wantSame(t, "longest", h.Longest(), time.Hour)
	})
}

// passing returns a lease that was granted for ttl, with or without the reserve for a hand-off.
func (b *bed) passing(t *testing.T, ttl time.Duration, reserved bool) *holding {
	t.Helper()
	if !reserved {
		return b.held("k", ttl)
	}
	h := b.opened("k", ttl+lease.Reserve(ttl))
	if !h.Pass(time.Now(), ttl, false) {
		t.Fatal("the holder relies on the reserve")
	}
	h.Watch(time.Now())
	return h
}

func TestLease_Pass(t *testing.T) {
	t.Parallel()
	const second, minute = time.Second, time.Minute
	fixed, renewed := false, true
	nothing := func(*holding) {}
	for _, tt := range []struct {
		name     string
		ttl      time.Duration
		reserved bool
		after    time.Duration
		what     func(h *holding)
		wants    time.Duration
		renewed  bool
		left     time.Duration // 0: the lease is not passed on
	}{
		{"renewed, at once", ttl, false, 0, nothing, ttl, renewed, ttl - margin(ttl)},
		{"renewed, half is left", ttl, false, ttl/2 - margin(ttl), nothing, ttl, renewed, ttl / 2},
		{"renewed, less is left", ttl, false, ttl/2 - margin(ttl) + 1, nothing, ttl, renewed, 0},
		{"fixed, at once", minute, false, 0, nothing, minute, fixed, minute - margin(minute)},
		{"fixed, later", minute, false, 1, nothing, minute, fixed, 0},
		{"fixed with its reserve, later", minute, true, 50 * time.Millisecond, nothing, minute, fixed, minute - margin(minute)},
		{"fixed, the reserve is used up", minute, true, 101 * time.Millisecond, nothing, minute, fixed, 0},
		{"fixed, the reserve of a short one", 20 * time.Millisecond, true, 15 * time.Millisecond, nothing, 20 * time.Millisecond, fixed, 17800 * time.Microsecond},
		{"fixed after a longer one", minute, false, 0, nothing, second, fixed, 0},
		{"fixed after a little longer one", second + 50*time.Millisecond, false, 0, nothing, second, fixed, second - margin(second)},
		{"fixed after a shorter one", second, false, 0, nothing, minute, fixed, 0},
		{"renewed after a fixed one with its reserve", ttl, true, second, nothing, ttl, renewed, ttl + 100*time.Millisecond - margin(ttl+100*time.Millisecond) - second},
		{"a command may land", ttl, false, 0, func(h *holding) { h.RecordNoAnswer() }, ttl, renewed, 0},
		{"there is a doubt", ttl, false, 0, func(h *holding) { h.Doubt() }, ttl, renewed, 0},
		{"a longer one was asked for", ttl, false, 0, func(h *holding) { h.Ask(minute) }, ttl, renewed, 0},
		{"it was lowered", minute, false, 0, func(h *holding) {
			h.Lower(time.Now(), second)
			h.Acknowledge(time.Now(), second)
		}, second, fixed, second - margin(second)},
		{"it was lowered, and has no reserve", second, true, 0, func(h *holding) {
			h.Lower(time.Now(), second/2)
			h.Acknowledge(time.Now(), second/2)
			time.Sleep(time.Nanosecond) // virtual time
		}, second / 2, fixed, 0},
		{"it was raised", second, true, second / 2, func(h *holding) { h.Acknowledge(time.Now(), second) }, second, fixed, second - margin(second)},
		{"it was raised by more than the reserve", second, true, second / 2, func(h *holding) {
			h.Acknowledge(time.Now(), second)
			time.Sleep(time.Nanosecond) // virtual time
		}, second, fixed, 0},
		{"it was raised by less than the reserve", second, true, 40 * time.Millisecond, func(h *holding) {
			h.Acknowledge(time.Now(), second)
			time.Sleep(59 * time.Millisecond) // the margin of a lease with a reserve is 1 ms longer
		}, second, fixed, second - margin(second)},
		{"it was raised by less than the reserve, which is used up", second, true, 40 * time.Millisecond, func(h *holding) {
			h.Acknowledge(time.Now(), second)
			time.Sleep(59*time.Millisecond + 1) // virtual time
		}, second, fixed, 0},
		{"it is lost", ttl, false, 0, func(h *holding) { h.Lose(errGone) }, ttl, renewed, 0},
		{"it is being released", ttl, false, 0, func(h *holding) { _ = h.BeginRelease() }, ttl, renewed, 0},
		{"it has ended", ttl, false, 0, func(h *holding) { h.End() }, ttl, renewed, 0},
	} {
		parallelBubble(t, tt.name, func(t *testing.T, b *bed) {
			h := b.passing(t, tt.ttl, tt.reserved)
			time.Sleep(tt.after) // virtual time
			tt.what(h)
			before := h.Left(time.Now())
			switch got := h.Pass(time.Now(), tt.wants, tt.renewed); {
			case got != (tt.left > 0):
				t.Errorf("passed: %v, %s are left", got, before)
			case got:
				wantLeft(t, h, tt.left)
			case h.Left(time.Now()) != before:
				t.Errorf("the deadline has moved by %s", h.Left(time.Now())-before)
			}
		})
	}
}

// However often a fixed lease is passed on, each holder gets its whole length, and no holder relies on the
// lock for longer than Redis confirmed.
func TestLease_PassedOnAndOn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const want = time.Second
		h := b.passing(t, want, true)
		end := time.Now().Add(want + 100*time.Millisecond - margin(want+100*time.Millisecond))
		passes := 0
		for ; h.Pass(time.Now(), want, false); passes++ {
			wantLeft(t, h, want-margin(want))
			if time.Now().Add(h.Left(time.Now())).After(end) {
				t.Fatalf("the deadline is later than the confirmed lease")
			}
			h.Watch(time.Now())
			time.Sleep(10 * time.Millisecond) // virtual time
		}
		if passes != 10 {
			t.Errorf("passed on %d times", passes)
		}
		pass(want) // the watchdog applies the last deadline
		wantLost(t, h, errOver)
	})
}

// The answer to a renewal for an earlier holder moves nothing and is not reported. If the present holder wants renewals, the
// watchdog then sends one for it, as after a failure.
func TestLease_PassedOnDuringARenewal(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]redisstore.Verdict{"renewed": there, "refused": refused} {
		for _, renewed := range []bool{false, true} {
			parallelBubble(t, fmt.Sprintf("%s, the next is renewed: %v", name, renewed), func(t *testing.T, b *bed) {
				const late = 40 * time.Millisecond
				b.redis.say("k", says)
				b.redis.delay("k", late)
				h := b.renewed("k")
				for h.Renewing() == nil {
					pass(time.Millisecond)
				}
				h.Acknowledge(time.Now(), ttl) // an answer to another command of the earlier holder
				h.StopRenewal()
				wants := ttl - 50*time.Millisecond // a little less than the renewal gives
				if renewed {
					wants = ttl
				}
				pass(time.Millisecond)
				if !h.Pass(time.Now(), wants, renewed) {
					t.Fatal("not passed on")
				}
				if renewed {
					h.Renew(time.Now())
				} else {
					h.Watch(time.Now())
				}
				left := h.Left(time.Now())
				pass(late)
				wantLeft(t, h, left-late)
				wantSame(t, "reports", len(h.renewals()), 0)

				b.redis.say("k", there)
				b.redis.calls()
				pass(retry + late)
				wantSame(t, "renewals for the present holder", len(b.redis.calls()), map[bool]int{true: 1}[renewed])
				wantSame(t, "reports", len(h.renewals()), map[bool]int{true: 1}[renewed])
				pass(wants)
				if renewed {
					wantHeld(t, h)
				} else {
					wantLost(t, h, errOver)
				}
			})
		}
	}
}
