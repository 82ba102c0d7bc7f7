package history_test

import "testing"

// Two processes read the clock one after the other. The later reading is later, however long each
// process was kept from running when it began.
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
