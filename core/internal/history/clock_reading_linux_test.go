package history_test

import "testing"

// Two clocks that start at different times agree: a later reading of either is later, even if the process was
// suspended when a clock was created.
func TestClock_OneForAll(t *testing.T) {
	t.Parallel()
	epoch := monotonic()
	one := clockSince(epoch)
	for range 100_000 {
		other := clockSince(epoch)
		if before, at, after := one(), other(), one(); at < before || at > after {
			t.Fatalf("one clock has %s and then %s, the other one %s in between", before, after, at)
		}
	}
}
