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

	waiting   atomic.Int64
	held      atomic.Int64
	debounced atomic.Bool // a busy lock is a debounced call

	labels    labels
	observe   []metric.ObserveOption
	spanStart []trace.SpanStartOption
	byOutcome table[string, labels]
	byFailure table[failure, labels]
	byReason  table[string, labels]
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
	if r, ok := t.rules.get(id); ok {
		return r
	}
	return t.newRule(ruleID{name: valid(name), kind: kind})
}

// newRule admits a rule while there is room. The others share one entry and get none
// of their own: their number is not bounded.
func (t *Telemetry) newRule(id ruleID) *rule {
	other := ruleID{name: ruleOther, kind: id.kind}
	if len(t.rules.all()) >= t.maxRules {
		if r, ok := t.rules.get(other); ok {
			return r
		}
	}
	return t.rules.add(func(live map[ruleID]*rule) ruleID {
		if _, known := live[id]; !known && len(live) >= t.maxRules {
			return other
		}
		return id
	}, t.compute)
}

func (t *Telemetry) compute(id ruleID) *rule {
	ruleAttr, kindAttr := attrRule.String(id.name), attrKind.String(string(id.kind))
	r := &rule{ruleID: id, labels: newLabels(ruleAttr, kindAttr)}
	r.observe = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(ruleAttr, kindAttr))}
	r.spanStart = []trace.SpanStartOption{trace.WithAttributes(ruleAttr, kindAttr)}
	for _, o := range outcomes() {
		r.outcome(o)
	}
	t.countFromZero(r)
	return r
}

// outcomes are those that are computed ahead.
func outcomes() []string {
	return []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy),
		outcomeReleased, outcomeRenewed,
	}
}

// countFromZero makes the series of a rule exist before anything is counted.
func (t *Telemetry) countFromZero(r *rule) {
	ctx := context.Background() //nolint:forbidigo // no request is being served
	t.inst.lost.Add(ctx, 0, r.labels.add...)
	t.inst.releaseFailures.Add(ctx, 0, r.labels.add...)
	t.inst.handoffs.Add(ctx, 0, r.labels.add...)
	for _, o := range []string{outcomeRenewed, outcomeLate, outcomeFailed} {
		t.inst.renewals.Add(ctx, 0, r.outcome(o).add...)
	}
}

// outcome is the label set of an outcome.
func (r *rule) outcome(o string) labels {
	if l, ok := r.byOutcome.get(o); ok {
		return l
	}
	return r.byOutcome.put(o, func(o string) labels { return r.with(attrOutcome.String(o)) })
}

// failure is the label set of a cause and its strategy.
func (r *rule) failure(f failure) labels {
	if l, ok := r.byFailure.get(f); ok {
		return l
	}
	return r.byFailure.put(f, func(f failure) labels {
		strategy := string(f.strategy)
		if strategy == "" {
			strategy = strategyNone
		}
		return r.with(attrCause.String(string(f.cause)), attrStrategy.String(strategy))
	})
}

// reason is the label set of a reason to run unlocked.
func (r *rule) reason(reason string) labels {
	if l, ok := r.byReason.get(reason); ok {
		return l
	}
	return r.byReason.put(reason, func(reason string) labels { return r.with(attrReason.String(reason)) })
}

func (r *rule) with(more ...attribute.KeyValue) labels {
	return newLabels(append(more, attrRule.String(r.name), attrKind.String(string(r.kind)))...)
}
