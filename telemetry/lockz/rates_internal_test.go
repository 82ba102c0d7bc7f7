package lockz

import (
	"testing"
	"time"
)

// A machine that does not know the time yet has a clock near 1970, or before it. Rates are counted
// there as at any other time, and those of five minutes are shown.
func TestRates_AtTheBeginningOfTime(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{time.Unix(0, 0), time.Unix(-7, 0), time.Unix(-1e9, 0), {}} {
		var r rates
		r.add(false, now)
		r.add(true, now)
		acquired, refused := r.last(now.Add(slotSeconds * time.Second))
		if last := len(acquired) - 1; last != slotsKept-2 || acquired[last] != 1.0/slotSeconds || refused[last] != 1.0/slotSeconds {
			t.Errorf("%v: got %v and %v, want one each in the last slot of %d", now, acquired, refused, slotsKept-1)
		}
	}
}
