package lockz

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
)

// The names of what is no rule, as package telemetry has them.
const (
	ruleNone  = "none"
	ruleOther = "other"
)

// rule is what is counted of one rule and kind of lock.
type rule struct {
	name string
	kind core.Kind

	waiting atomic.Int64
	held    atomic.Int64
	lost    atomic.Int64
	lostAt  atomic.Int64 // Unix nanoseconds of the last loss; 0: none
	counts  [len(outcomes)]atomic.Int64
	waits   histogram
	holds   histogram
	rates   rates
}

// outcomes are those of acquisitions, in the order in which they are counted.
var outcomes = [...]core.Outcome{ //nolint:gochecknoglobals // a constant
	core.OutcomeAcquired, core.OutcomeReentered, core.OutcomeBusy, core.OutcomeOverload,
	core.OutcomeBackend, core.OutcomeKey, core.OutcomeCanceled,
}

// refused reports whether an acquisition ended without the lock.
func refused(o core.Outcome) bool { return o != core.OutcomeAcquired && o != core.OutcomeReentered }

// acquired counts the end of an acquisition.
func (r *rule) acquired(o core.Outcome, waited time.Duration, now time.Time) {
	for i, known := range outcomes {
		if known == o {
			r.counts[i].Add(1)
			break
		}
	}
	r.waits.add(waited)
	r.rates.add(refused(o), now)
}

// ruleID is what tells rules apart.
type ruleID struct {
	name string
	kind core.Kind
}

// rules is a map that is read without a lock and copied to be written.
type rules struct {
	limit int
	mu    sync.Mutex
	live  atomic.Pointer[map[ruleID]*rule]
}

// all is the map as it is now, not to be changed.
func (t *rules) all() map[ruleID]*rule {
	if m := t.live.Load(); m != nil {
		return *m
	}
	return nil
}

// of gives a rule by the label of an acquisition. After the limit new labels are one rule.
func (t *rules) of(label string, kind core.Kind) *rule {
	if label == "" {
		label = ruleNone
	}
	if r, ok := t.all()[ruleID{label, kind}]; ok {
		return r
	}
	return t.add(ruleID{label, kind})
}

func (t *rules) add(id ruleID) *rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	live := t.all()
	if _, known := live[id]; !known && len(live) >= t.limit {
		id.name = ruleOther
	}
	if r, ok := live[id]; ok {
		return r
	}
	next := maps.Clone(live)
	if next == nil {
		next = make(map[ruleID]*rule)
	}
	next[id] = &rule{name: id.name, kind: id.kind}
	t.live.Store(&next)
	return next[id]
}
