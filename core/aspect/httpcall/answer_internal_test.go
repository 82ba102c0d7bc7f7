package httpcall

import (
	"testing"
	"time"
)

// Retry-After is rounded to whole seconds, at least 1. A hint of zero or less sets no header.
func TestNearestSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int{
		0: 0, -time.Second: 0, time.Nanosecond: 1, 300 * time.Millisecond: 1,
		1400 * time.Millisecond: 1, 1600 * time.Millisecond: 2, 5 * time.Second: 5,
	} {
		if got := nearestSeconds(d); got != want {
			t.Errorf("%s: got %d, want %d", d, got, want)
		}
	}
}
