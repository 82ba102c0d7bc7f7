package redisstore

import (
	"testing"
	"time"
	"unsafe"
)

// stepped is a reading of a clock that was set by d since: the wall clock differs by that,
// the monotonic one does not. No function of package time makes one.
func stepped(t *testing.T, now time.Time, d time.Duration) time.Time {
	t.Helper()
	// See time.Time: with a monotonic reading the seconds are above the nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&now))
	before := now
	*wall += uint64(int64(d/time.Second)) << 30 //nolint:gosec // it wraps
	if now.Sub(before) != 0 || now.Round(0).Sub(before.Round(0)) != d {
		t.Skip("package time keeps its readings in another way")
	}
	return now
}

// A clock that is set while a call has no answer changes nothing in how long that was.
func TestHealth_ClockIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	const timeout = time.Hour // no machine is so slow
	for name, step := range map[string]time.Duration{"back": 24 * time.Hour, "forward": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHealth("", Config{Timeout: timeout}, address{dialing: newDialing(1)})
			defer h.close()
			h.sent(stepped(t, time.Now(), step))
			if h.unanswered(timeout) {
				t.Error("silent at once")
			}
			if now := time.Now(); h.verdict(now).Sub(now) > timeout {
				t.Errorf("a ping has %s", h.verdict(now).Sub(now))
			}
			h.answered()
			h.sent(stepped(t, time.Now().Add(-2*timeout), step))
			if !h.unanswered(timeout) {
				t.Error("not silent after twice the timeout")
			}
		})
	}
}
