package aspect

import (
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const almost = 0.999999
	for _, tc := range []struct {
		cause     failpolicy.Cause
		estimate  time.Duration
		low, high time.Duration // bounds for random 0 and almost 1
	}{
		{failpolicy.Busy, -time.Second, time.Second, 2 * time.Second},
		{failpolicy.Busy, 0, time.Second, 2 * time.Second},
		{failpolicy.Busy, 10 * time.Millisecond, time.Second, 2 * time.Second},
		{failpolicy.Busy, 2 * time.Second, 1500 * time.Millisecond, 2500 * time.Millisecond},
		{failpolicy.Busy, 4 * time.Second, 3 * time.Second, 5 * time.Second},
		{failpolicy.Busy, time.Hour, 2500 * time.Millisecond, 5 * time.Second},
		{failpolicy.Overload, 0, time.Second, 2 * time.Second},
		{failpolicy.Backend, time.Hour, time.Second, 2 * time.Second},
		{failpolicy.Debounced, 0, time.Second, time.Second},
		{failpolicy.Debounced, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
		{failpolicy.Debounced, 2400 * time.Millisecond, 3 * time.Second, 3 * time.Second},
		{failpolicy.Debounced, time.Minute, time.Minute, time.Minute},
		{failpolicy.Key, time.Second, 0, 0},
		{failpolicy.Lost, time.Second, 0, 0},
		{failpolicy.Canceled, time.Second, 0, 0},
		{failpolicy.Deadline, time.Second, 0, 0},
	} {
		if got := retryAfter(tc.cause, tc.estimate, 0); got != tc.low {
			t.Errorf("%s after %s, random 0: got %s, want %s", tc.cause, tc.estimate, got, tc.low)
		}
		if got := retryAfter(tc.cause, tc.estimate, almost); got > tc.high || tc.high-got > 10*time.Microsecond {
			t.Errorf("%s after %s, random 1: got %s, want about %s", tc.cause, tc.estimate, got, tc.high)
		}
	}
}

func FuzzRetryAfter_StaysInItsBounds(f *testing.F) {
	f.Add(int64(0), 0.5)
	f.Add(int64(math.MaxInt64), 1.5)
	f.Add(int64(math.MinInt64), -3.0)
	f.Add(int64(time.Second), math.NaN())
	f.Fuzz(func(t *testing.T, estimate int64, random float64) {
		for _, c := range []failpolicy.Cause{failpolicy.Busy, failpolicy.Overload, failpolicy.Backend} {
			got := retryAfter(c, time.Duration(estimate), random)
			if got < minRetry || got > maxRetry {
				t.Errorf("%s: got %s for %d, %v", c, got, estimate, random)
			}
		}
		if got := retryAfter(failpolicy.Debounced, time.Duration(estimate), random); got <= 0 {
			t.Errorf("debounced: got %s for %d", got, estimate)
		}
	})
}
