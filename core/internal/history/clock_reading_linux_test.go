package history_test

import "testing"

// Two processes that read the clock one after the other read the later time later, however
// long each was kept from running when it began.
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
