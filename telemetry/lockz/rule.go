package lockz

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/internal/lookup"
)

// The names of what is no rule, as package telemetry has them.
const (
	ruleNone  = "none"
	ruleOther = "other"
)

// rule is one rule and kind of lock.
type rule struct {
	name  string
	kind  core.Kind
	holds histogram // how long its holds lasted
}

// ruleID is what tells rules apart.
type ruleID struct {
	name string
	kind core.Kind
}

// rules are the rules by the labels of acquisitions. After the limit new labels are one rule.
type rules struct {
	limit int
	table lookup.Table[ruleID, *rule]
}

// of returns a rule by the label of an acquisition.
func (t *rules) of(label string, kind core.Kind) *rule {
	id := ruleID{cmp.Or(label, ruleNone), kind}
	if r, ok := t.table.Get(id); ok {
		return r
	}
	return t.table.Add(func(live map[ruleID]*rule) ruleID {
		if _, known := live[id]; !known && len(live) >= t.limit {
			return ruleID{ruleOther, kind}
		}
		return id
	}, func(id ruleID) *rule { return &rule{name: id.name, kind: id.kind} })
}

// bounds are the upper ends of the buckets of a histogram; the last bucket has none.
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
	var all, sum int64
	for i := range h.buckets {
		all += h.buckets[i].Load()
	}
	if all < leastUsual {
		return 0
	}
	for i, bound := range bounds {
		if sum += h.buckets[i].Load(); sum*100 >= all*99 {
			return bound
		}
	}
	return 0
}
