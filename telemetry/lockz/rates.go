package lockz

import (
	"sync/atomic"
	"time"
)

// The rates of a rule are kept for five minutes, in slots of five seconds.
const (
	slotSeconds = 5
	slotsKept   = 60
	slotsNow    = 12 // the last minute
)

// rates counts acquisitions by time. Counts that meet the turn of a slot may be missing. The
// zero value is empty.
type rates struct{ slots [slotsKept]slot }

type slot struct {
	number   atomic.Int64 // which slot of all times it is
	acquired atomic.Int64
	refused  atomic.Int64
}

// slot is where a slot of all times is kept. Before 1970 their numbers are negative.
func (r *rates) slot(number int64) *slot {
	return &r.slots[(number%slotsKept+slotsKept)%slotsKept]
}

func (r *rates) add(refused bool, now time.Time) {
	number := now.Unix() / slotSeconds
	s := r.slot(number)
	if old := s.number.Load(); old != number && s.number.CompareAndSwap(old, number) {
		s.acquired.Store(0)
		s.refused.Store(0)
	}
	if refused {
		s.refused.Add(1)
	} else {
		s.acquired.Add(1)
	}
}

// last gives acquisitions per second, the oldest first, without the slot that is not over.
func (r *rates) last(now time.Time) (acquired, refused []float64) {
	present := now.Unix() / slotSeconds
	for number := present - slotsKept + 1; number < present; number++ {
		s := r.slot(number)
		if s.number.Load() != number {
			acquired, refused = append(acquired, 0), append(refused, 0)
			continue
		}
		acquired = append(acquired, float64(s.acquired.Load())/slotSeconds)
		refused = append(refused, float64(s.refused.Load())/slotSeconds)
	}
	return acquired, refused
}

// mean of the last minute.
func mean(list []float64) float64 {
	list = list[max(len(list)-slotsNow, 0):]
	if len(list) == 0 {
		return 0
	}
	var sum float64
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}
