package lease_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
)

func TestDeadlineAfter_KeepsAMargin(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	for ttl, want := range map[time.Duration]time.Duration{
		30 * time.Second:      30*time.Second - 302*time.Millisecond,
		time.Second:           988 * time.Millisecond,
		10 * time.Millisecond: 7900 * time.Microsecond,
		4 * time.Millisecond:  2 * time.Millisecond, // exactly half
		time.Millisecond:      500 * time.Microsecond,
		time.Hour:             time.Hour - 36*time.Second - 2*time.Millisecond,
	} {
		if got := lease.DeadlineAfter(sent, ttl).Sub(sent); got != want {
			t.Errorf("%s: got %s, want %s", ttl, got, want)
		}
	}
}

func TestExpired_ByEitherClock(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	end := lease.DeadlineAfter(sent, time.Second).Sub(sent)
	wall := func(d time.Duration) time.Time { return sent.Add(d).Round(0) } // without the monotonic clock
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"just before":               {sent.Add(end - 1), false},
		"at the end":                {sent.Add(end), true},
		"after it":                  {sent.Add(time.Minute), true},
		"wall clock, just before":   {wall(end - 1), false},
		"wall clock, at the end":    {wall(end), true},
		"before it was sent at all": {sent.Add(-time.Minute), false},
	} {
		if got := lease.Expired(sent, time.Second, c.now); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The clock that shows less time left decides.
func TestLease_DeadlineOnBothClocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ mono, wall, left time.Duration }{
		"as sent":                      {0, 0, 988 * time.Millisecond},
		"suspended for a while":        {0, 300 * time.Millisecond, 688 * time.Millisecond},
		"suspended for long":           {0, time.Hour, 988*time.Millisecond - time.Hour},
		"wall clock set back":          {0, -time.Hour, 988 * time.Millisecond},
		"stopped, wall clock set back": {time.Minute, -time.Hour, 988*time.Millisecond - time.Minute},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			h := b.held("k", time.Second)
			h.AdvanceClocks(c.mono, c.wall)
			now := time.Now()
			wantLeft(t, h, c.left)
			wantSame(t, "expired", h.Expired(now), c.left <= 0)
			if got := h.Remaining(now); got != max(c.left, 0) {
				t.Errorf("remaining: got %s", got)
			}
			wantSame(t, "alive", h.Alive(now), c.left > 0)
		})
	}
}
