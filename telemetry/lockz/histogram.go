package lockz

import (
	"sync/atomic"
	"time"
)

// bounds are the upper ends of the buckets of the histograms; the last bucket has none.
var bounds = [...]time.Duration{ //nolint:gochecknoglobals // a constant
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// histogram counts durations. The zero value is empty.
type histogram struct{ buckets [len(bounds) + 1]atomic.Int64 }

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
}

func (h *histogram) counts() []int64 {
	list := make([]int64, len(h.buckets))
	for i := range h.buckets {
		list[i] = h.buckets[i].Load()
	}
	return list
}

// A hold is old if it has lasted for longer than leastOld, and for more than muchLonger times as long
// as 99 % of the finished holds of its rule. There have to be leastUsual of these.
const (
	leastUsual = 10
	muchLonger = 3
	leastOld   = time.Second
)

// usual returns the upper end of the bucket that 99 % of all durations reach. It returns 0 if there are
// too few durations, or if more than 1 % of them are longer than the last bound.
func (h *histogram) usual() time.Duration {
	counts := h.counts()
	var all int64
	for _, n := range counts {
		all += n
	}
	if last := counts[len(counts)-1]; all < leastUsual || last*100 > all {
		return 0
	}
	return quantile(counts, 0.99)
}

// quantile is the upper end of the bucket that the q-th part of all is in; of the last bucket
// its lower end. 0 without any.
func quantile(counts []int64, q float64) time.Duration {
	var all int64
	for _, n := range counts {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank, sum := int64(q*float64(all)), int64(0)
	for i, n := range counts {
		if sum += n; sum > rank || sum == all {
			return bounds[min(i, len(bounds)-1)]
		}
	}
	return bounds[len(bounds)-1]
}
