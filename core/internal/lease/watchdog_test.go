package lease_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// third is the latest time of a renewal, and jitter is how much earlier it may be.
const (
	third  = ttl / 3
	jitter = third / 10
	retry  = ttl / 30 // how much earlier a renewal may be sent together with others; also the pause after a failure
)

func TestWatchdog_RenewsEveryThird(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.renewed("k")
		pass(10 * time.Minute)
		last := b.start
		calls := b.redis.calls()
		for _, c := range calls {
			if gap := c.at.Sub(last); gap < third-jitter || gap > third+time.Millisecond {
				t.Errorf("renewed after %s", gap)
			}
			if c.ttl != ttl || !slices.Equal(c.keys, []string{"k"}) {
				t.Errorf("%v was renewed for %s", c.keys, c.ttl)
			}
			last = c.at
		}
		if n := len(calls); n < 60 || n > 67 {
			t.Errorf("%d renewals", n)
		}
		wantHeld(t, h)
		wantSame(t, "left after the last renewal", h.Left(last), ttl-margin(ttl))
		if reports := h.renewals(); len(reports) != len(calls) || reports[0].err != nil || reports[0].late != 0 {
			t.Errorf("%d reports, the first %v", len(reports), reports[0])
		}
	})
}

// Processes that were started together do not renew at the same time.
func TestWatchdog_Jitters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		seen := make(map[time.Duration]bool)
		for i := range 20 {
			h := b.renewed(fmt.Sprint("n/", i))
			begun := time.Now()
			pass(third + time.Millisecond)
			seen[b.redis.calls()[0].at.Sub(begun)] = true
			h.End()
		}
		if len(seen) < 10 {
			t.Errorf("%d different moments of 20", len(seen))
		}
	})
}

// A lease that is due soon is renewed together with leases that are due now.
func TestWatchdog_RenewalsTravelTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for i := range 10 {
			b.renewed(fmt.Sprint("n/", i))
		}
		pass(third + time.Millisecond)
		calls := b.redis.calls()
		if len(calls) > 2 { // the jitter is equal to the time by which a renewal may be early
			t.Errorf("%d calls", len(calls))
		}
		var keys []string
		for _, c := range calls {
			keys = append(keys, c.keys...)
		}
		if slices.Sort(keys); len(slices.Compact(keys)) != 10 {
			t.Errorf("renewed %v", keys)
		}
	})
}

// Each kind has a separate script, so it needs a separate call.
func TestWatchdog_RenewsKindsApart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		plain, fenced := &redisstore.Kind{Name: "plain"}, &redisstore.Kind{Name: "fenced"}
		for i := range 10 {
			kind := plain
			if i%2 == 0 {
				kind = fenced
			}
			b.openedAs(kind, fmt.Sprint("n/", i), ttl).Renew(time.Now())
		}
		pass(third + time.Millisecond)
		seen := make(map[*redisstore.Kind]int)
		for _, c := range b.redis.calls() {
			seen[c.kind] += len(c.keys)
		}
		if seen[plain] != 5 || seen[fenced] != 5 {
			t.Errorf("renewed %d and %d", seen[plain], seen[fenced])
		}
	})
}

// If no hold wants a renewal, the lease expires.
func TestWatchdog_RenewsOnlyWhatIsWished(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		fixed, renewed := b.held("fixed", time.Minute), b.renewed("renewed")
		renewed.Renew(time.Now()) // two holds want renewals
		renewed.StopRenewal()
		pass(2 * time.Minute)
		wantLost(t, fixed, errOver)
		wantHeld(t, renewed)
		renewed.StopRenewal()
		b.redis.calls()
		pass(ttl)
		wantLost(t, renewed, errOver)
		if calls := b.redis.calls(); len(calls) > 0 {
			t.Errorf("renewed %d times", len(calls))
		}
	})
}

// After a pause in renewals, the next one is due a third of the TTL after the new call of Renew.
func TestWatchdog_RenewsAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Hour)
		for range 3 {
			h.Renew(time.Now())
			pass(third + time.Millisecond)
			wantSame(t, "renewals", len(b.redis.calls()), 1)
			h.StopRenewal()
			pass(2 * third)
			wantSame(t, "renewals", len(b.redis.calls()), 0)
		}
		wantHeld(t, h)
	})
}

func TestWatchdog_FailedRenewalsAreTriedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]struct {
		says interface{ Error() string }
		late bool // Redis may still execute it
	}{"no answer": {errNoAnswer, true}, "refused": {errRefused, false}} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			says := noAnswer
			says.Err = failure.says
			b.redis.say("k", says)
			h := b.renewed("k")
			pass(ttl / 2)
			wantHeld(t, h)
			if h.Landing().IsZero() == failure.late {
				t.Errorf("commands may be executed until %s", h.Landing())
			}
			pass(ttl)
			wantLost(t, h, errOver)
			calls := b.redis.calls()
			for i, c := range calls[1:] {
				if gap := c.at.Sub(calls[i].at); gap > retry+time.Millisecond || gap < retry/2 {
					t.Errorf("%s between two tries", gap)
				}
			}
			if n := len(calls); n < 15 || n > 40 {
				t.Errorf("%d tries", n)
			}
			if reports := h.renewals(); len(reports) != len(calls) || !errors.Is(reports[0].err, failure.says) {
				t.Errorf("%d reports of %d tries, the first %v", len(reports), len(calls), reports[0].err)
			}
		})
	}
}

// A single successful renewal keeps the lease.
func TestWatchdog_SurvivesFailures(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.renewed("k")
		for range 10 {
			b.redis.say("k", refused)
			pass(ttl - 5*retry)
			wantHeld(t, h)
			b.redis.say("k", there)
			pass(2 * retry)
			wantHeld(t, h)
		}
	})
}

func TestWatchdog_RedisSaysGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		first, other := b.renewed("first"), b.renewed("other")
		b.redis.say("first", gone)
		pass(third + time.Millisecond)
		wantLost(t, first, errGone)
		wantHeld(t, other)
		if len(first.renewals()) > 0 {
			t.Error("the loss was reported as a renewal")
		}
		b.redis.calls()
		pass(time.Minute)
		for _, c := range b.redis.calls() {
			if slices.Contains(c.keys, "first") {
				t.Error("renewed after the loss")
			}
		}
	})
}

// A slow or dead node does not delay other nodes.
func TestWatchdog_SlowNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var dead, slow, well []*holding
		for i := range 5 {
			dead = append(dead, b.renewed(fmt.Sprint("dead/", i)))
			slow = append(slow, b.renewed(fmt.Sprint("slow/", i)))
			well = append(well, b.renewed(fmt.Sprint("well/", i)))
		}
		b.redis.delay("dead", time.Hour)
		b.redis.delay("slow", timeout-time.Millisecond)
		pass(2 * ttl)
		for _, h := range dead {
			wantLost(t, h, errOver)
		}
		for _, h := range slow {
			wantHeld(t, h)
		}
		for _, h := range well {
			wantHeld(t, h)
			for _, r := range h.renewals() {
				if r.late > 0 || r.err != nil {
					t.Errorf("%s: %v, late by %s", h.Key, r.err, r.late)
				}
			}
		}
		for _, c := range b.redis.calls() {
			for _, key := range c.keys {
				if node(key) != node(c.keys[0]) {
					t.Fatalf("one call for %v", c.keys)
				}
			}
		}
	})
}

// The deadline is counted from the time at which the renewal was sent, not from its answer.
func TestWatchdog_RenewalCountsFromTheSending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.redis.delay("k", 4*time.Second)
		h := b.renewed("k")
		pass(third + 4*time.Second)
		sent := b.redis.calls()[0].at
		wantSame(t, "left from the sending", h.Left(sent), ttl-margin(ttl))
	})
}

// During a release, the verdict of a renewal does not count, and the renewal is not repeated.
func TestWatchdog_ReleaseMakesARenewalVoid(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]error{"there": nil, "gone": errGone, "no answer": errNoAnswer} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			verdict := there
			if verdict.Err = says; errors.Is(says, errGone) {
				verdict = gone
			}
			b.redis.say("k", verdict)
			b.redis.delay("k", 4*time.Second)
			h := b.renewed("k")
			pass(third)
			if h.Renewing() == nil {
				t.Fatal("no renewal is on the wire")
			}
			before := h.Left(b.start)
			if err := h.BeginRelease(); err != nil {
				t.Error(err)
			}
			pass(4 * time.Second)
			if h.Left(b.start) != before || h.Loss() != nil || len(h.lost()) > 0 {
				t.Errorf("%s left, loss %v", h.Left(b.start), h.Loss())
			}
			pass(ttl)
			wantSame(t, "renewals", len(b.redis.calls()), 1)
		})
	}
}

// A caller can wait for the renewal that is on its way.
func TestLease_Renewing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.renewed("k")
		b.redis.delay("k", 4*time.Second)
		if h.Renewing() != nil {
			t.Error("a renewal is on the wire")
		}
		pass(third)
		sent := b.redis.calls()[0].at
		h.StopRenewal()
		done, also := h.Renewing(), h.Renewing()
		<-done
		<-also
		wantSame(t, "answered after", time.Since(sent), 4*time.Second)
		if h.Renewing() != nil {
			t.Error("it still is")
		}
	})
}

// The watchdog renews all leases of a batch before it notifies any holder. It reports losses first. The next
// renewal does not wait for a slow holder.
func TestWatchdog_SlowHolderDelaysNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		holders := make([]*holding, 10)
		for i := range holders {
			holders[i] = b.renewed(fmt.Sprint("n/", i))
			holders[i].slow = time.Hour
		}
		b.redis.say("n/9", gone)
		pass(third + time.Millisecond)
		wantLost(t, holders[9], errGone)
		pass(10 * time.Minute)
		for _, h := range holders[:9] {
			wantHeld(t, h)
			if left := h.Left(time.Now()); left < ttl/2 {
				t.Errorf("%s: %s left", h.Key, left)
			}
		}
		for _, h := range holders {
			h.End()
		}
		pass(2 * time.Hour * time.Duration(len(holders))) // all holders have been notified
	})
}

// A renewal that could not be sent in time is reported as late.
func TestWatchdog_ReportsLateRenewals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.renewed("k")
		b.redis.nameIn(3 * time.Second)
		pass(third + 4*time.Second)
		reports := h.renewals()
		if len(reports) != 1 || reports[0].late != 3*time.Second-retry {
			t.Errorf("reported %v, want 2s late", reports)
		}
	})
}
