package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
)

// ruleID is what series are told apart by.
type ruleID struct {
	name string
	kind core.Kind
}

// rule is everything that was computed once for one rule.
type rule struct {
	ruleID

	begun     atomic.Bool // its series have
	waiting   atomic.Int64
	held      atomic.Int64
	debounced atomic.Bool // a busy lock is a debounced call

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

// rule finds what was computed for a rule.
func (t *Telemetry) rule(name string, kind core.Kind) *rule {
	if name == "" {
		name = ruleNone
	}
	id := ruleID{name: name, kind: kind}
	if r, ok := t.rules.all()[id]; ok {
		return r
	}
	return t.newRule(ruleID{name: valid(name), kind: kind})
}

// sdkRules is how many rules an SDK has room for by default: 2,000 series of an instrument, and 8
// outcomes of a rule.
const sdkRules = 250

// newRule admits a rule while there is room. The others share one entry and get none
// of their own: their number is not bounded.
func (t *Telemetry) newRule(id ruleID) *rule {
	if len(t.rules.all()) == sdkRules {
		t.crowded.Do(func() {
			t.alarm().Warn("many lock rules: by default an SDK folds the series of an instrument beyond 2,000 into one: " +
				"give the meter provider WithCardinalityLimit, or telemetry.New WithMaxRules(250)")
		})
	}
	other := ruleID{name: ruleOther, kind: id.kind}
	if r, ok := t.rules.all()[other]; ok && len(t.rules.all()) >= t.maxRules {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.rules.all()[id]; !known && len(t.rules.all()) >= t.maxRules {
		id = other
	}
	return t.rules.put(id, t.compute)
}

func (t *Telemetry) compute(id ruleID) *rule {
	ruleAttr, kindAttr := attrRule.String(id.name), attrKind.String(string(id.kind))
	r := &rule{ruleID: id, labels: newLabels(ruleAttr, kindAttr)}
	r.observe = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(ruleAttr, kindAttr))}
	r.spanStart = []trace.SpanStartOption{trace.WithAttributes(ruleAttr, kindAttr)}
	for _, o := range outcomes() {
		r.outcome(o)
	}
	return r
}

// outcomes are those that are computed ahead.
func outcomes() []string {
	return []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy),
		outcomeReleased, outcomeRenewed,
	}
}

// beginSeries makes the series of rules exist before anything is counted. It does so at a
// collection, because what is added before the program has set its meter provider is dropped.
func (t *Telemetry) beginSeries(ctx context.Context) {
	for _, r := range t.rules.all() {
		if r.begun.Swap(true) {
			continue
		}
		for _, counter := range []metric.Int64Counter{t.inst.lost, t.inst.leaks, t.inst.releaseFailures, t.inst.handoffs} {
			counter.Add(ctx, 0, r.labels.add...)
		}
		for _, o := range []string{outcomeRenewed, outcomeLate, outcomeFailed} {
			t.inst.renewals.Add(ctx, 0, r.outcome(o).add...)
		}
	}
	for _, d := range t.newSites() {
		t.countFailuresFromZero(ctx, d.rule, &d.info)
	}
}

// newSites returns the declared rules whose series have not begun, once.
func (t *Telemetry) newSites() (list []declared) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, d := range t.sites {
		if d.new {
			list = append(list, d)
			d.new = false
			t.sites[at] = d
		}
	}
	return list
}

// outcome is the label set of an outcome.
func (r *rule) outcome(o string) labels {
	return r.byOutcome.put(o, func(o string) labels { return r.with(attrOutcome.String(o)) })
}

// failure is the label set of a cause and its strategy, which is none for a cause that asks for none.
func (r *rule) failure(c failpolicy.Cause, s failpolicy.Strategy) labels {
	if s == "" || !c.AsksStrategy() {
		s = strategyNone
	}
	return r.byFailure.put(failure{c, s}, func(f failure) labels {
		return r.with(attrCause.String(string(f.cause)), attrStrategy.String(string(f.strategy)))
	})
}

// reason is the label set of a reason to run unlocked.
func (r *rule) reason(reason string) labels {
	return r.byReason.put(reason, func(reason string) labels { return r.with(attrReason.String(reason)) })
}

func (r *rule) with(more ...attribute.KeyValue) labels {
	return newLabels(append(more, attrRule.String(r.name), attrKind.String(string(r.kind)))...)
}
