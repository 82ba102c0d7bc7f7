package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
)

// ruleID identifies the series of a rule.
type ruleID struct {
	name string
	kind core.Kind
}

// rule holds the counts of one rule and its attribute sets, which are computed once.
type rule struct {
	ruleID

	hasSeries atomic.Bool // the series of the rule exist
	waiting   atomic.Int64
	held      atomic.Int64
	debounced atomic.Bool // a busy lock means that the call is debounced

	labels    labels
	observe   []metric.ObserveOption
	spanStart []trace.SpanStartOption
	byOutcome lookup[string, labels]
	byFailure lookup[failure, labels]
	byReason  lookup[string, labels]
}

type failure struct {
	cause    failpolicy.Cause
	strategy failpolicy.Strategy
}

// labels is one set of labels in the forms that the instruments take.
type labels struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

func newLabels(kvs ...attribute.KeyValue) labels {
	opt := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return labels{record: []metric.RecordOption{opt}, add: []metric.AddOption{opt}}
}

// rules holds every observed rule, up to a fixed number. Further rules share one entry.
type rules struct {
	known   lookup[ruleID, *rule]
	limit   int
	crowded func() // called once, when there are more rules than an SDK supports by default

	warn sync.Once
	mu   sync.Mutex // guards the admission of a rule
}

// entry returns the entry of a rule.
func (r *rules) entry(name string, kind core.Kind) *rule {
	if name == "" {
		name = ruleNone
	}
	id := ruleID{name: name, kind: kind}
	if found, ok := r.known.all()[id]; ok {
		return found
	}
	return r.admit(ruleID{name: valid(name), kind: kind})
}

// sdkRules is the number of rules that an SDK supports by default. An SDK keeps 2,000 series per instrument,
// and a rule has up to 8 outcomes.
const sdkRules = 250

// admit adds a rule while there is room. After that, it returns the shared entry, because the number of
// further names is unlimited.
func (r *rules) admit(id ruleID) *rule {
	if len(r.known.all()) == sdkRules {
		r.warn.Do(r.crowded)
	}
	other := ruleID{name: ruleOther, kind: id.kind}
	if shared, ok := r.known.all()[other]; ok && len(r.known.all()) >= r.limit {
		return shared
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known.all()[id]; !known && len(r.known.all()) >= r.limit {
		id = other
	}
	return r.known.put(id, newRule)
}

func newRule(id ruleID) *rule {
	ruleAttr, kindAttr := attrRule.String(id.name), attrKind.String(string(id.kind))
	r := &rule{ruleID: id, labels: newLabels(ruleAttr, kindAttr)}
	r.observe = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(ruleAttr, kindAttr))}
	r.spanStart = []trace.SpanStartOption{trace.WithAttributes(ruleAttr, kindAttr)}
	for _, o := range usualOutcomes() {
		r.outcome(o)
	}
	return r
}

// usualOutcomes returns the outcomes whose labels are computed with the rule. The labels of
// others are computed when they first occur.
func usualOutcomes() []string {
	return []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy),
		outcomeReleased, outcomeRenewed,
	}
}

// acquireOutcome returns the outcome of an acquisition under the rule.
func (r *rule) acquireOutcome(o core.Outcome) string {
	if o == core.OutcomeBusy && r.debounced.Load() {
		return outcomeDebounced
	}
	return string(o)
}

// outcome returns the labels of an outcome.
func (r *rule) outcome(o string) labels {
	return r.byOutcome.put(o, func(o string) labels { return r.with(attrOutcome.String(o)) })
}

// failure returns the labels of a cause and its strategy. A cause that has no strategy gets strategyNone.
func (r *rule) failure(c failpolicy.Cause, s failpolicy.Strategy) labels {
	if s == "" || !c.AsksStrategy() {
		s = strategyNone
	}
	return r.byFailure.put(failure{c, s}, func(f failure) labels {
		return r.with(attrCause.String(string(f.cause)), attrStrategy.String(string(f.strategy)))
	})
}

// reason returns the labels of a reason to run unlocked.
func (r *rule) reason(reason string) labels {
	return r.byReason.put(reason, func(reason string) labels { return r.with(attrReason.String(reason)) })
}

func (r *rule) with(more ...attribute.KeyValue) labels {
	return newLabels(append(more, attrRule.String(r.name), attrKind.String(string(r.kind)))...)
}
