package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// acquisitions reports the acquisitions of locks: the span lock.acquire, the metrics wait.duration,
// acquire.duration, waiters and handoffs, and records about failures and long waits.
type acquisitions struct {
	inst     *instruments
	spans    *spans
	log      *logger
	longWait time.Duration // 0: no records about long waits
}

// observeStart starts the span of an acquisition.
func (o *acquisitions) observeStart(ctx context.Context, a core.Acquisition) context.Context {
	if o.spans.tracer == nil {
		return ctx
	}
	return o.spans.start(ctx, spanAcquire, o.spans.rules.entry(a.Label, a.Kind), &a)
}

// observeContention counts a waiter. It adds an event with the holder to the span.
func (o *acquisitions) observeContention(ctx context.Context, c core.Contention) {
	s := o.spans.find(ctx, spanAcquire, &c.Acquisition)
	o.spans.ruleOf(s, &c.Acquisition).waiting.Add(1)
	if s == nil {
		return
	}
	if c.BlockedBy == "" {
		s.AddEvent(eventContended)
		return
	}
	s.AddEvent(eventContended, trace.WithAttributes(blockedByAttrs(c.BlockedBy)...))
	o.spans.link(s, c.BlockedBy)
}

// observeEnd counts an acquisition, ends its span, and logs it if Redis failed or the wait was long.
func (o *acquisitions) observeEnd(ctx context.Context, r core.AcquireResult) {
	s := o.spans.find(ctx, spanAcquire, &r.Acquisition)
	rule := o.spans.ruleOf(s, &r.Acquisition)
	outcome := rule.acquireOutcome(r.Outcome)
	o.record(ctx, rule, &r, outcome)
	if r.Err != nil && o.spans.tracer != nil {
		o.spans.roots.Delete(rootOf(&r.Acquisition)) // no hold begins
	}
	if s != nil {
		o.endSpan(s, &r, outcome)
	}
	switch {
	case r.Outcome == core.OutcomeBackend:
		o.log.logBackend(ctx, rule.ruleID, &r)
	case o.longWait > 0 && r.Waited >= o.longWait:
		o.log.logLongWait(ctx, rule.ruleID, &r)
	}
}

func (o *acquisitions) record(ctx context.Context, rule *rule, r *core.AcquireResult, outcome string) {
	if r.Contended {
		rule.waiting.Add(-1)
	}
	if o.inst.wait.Enabled(ctx) {
		o.inst.wait.Record(ctx, r.Waited.Seconds(), rule.outcome(outcome).record...)
	}
	if r.RoundTrip > 0 && !r.Contended {
		o.inst.acquire.Record(exemplarIf(ctx, r.RoundTrip >= slowTrip), r.RoundTrip.Seconds(), rule.labels.record...)
	}
	if r.HandedOff {
		o.inst.handoffs.Add(ctx, 1, rule.labels.add...)
	}
}

func (o *acquisitions) endSpan(s *span, r *core.AcquireResult, outcome string) {
	o.spans.set(s, func(room []attribute.KeyValue) []attribute.KeyValue { return o.appendAttrs(room, r, outcome) })
	o.spans.link(s, r.BlockedBy)
	if r.HandedOff {
		s.AddEvent(eventHandedOver)
	}
	if r.Outcome == core.OutcomeBackend {
		errType, text := errorType(r.Err), "redis unavailable"
		if errType == errorWrongType {
			text = "key holds no lock"
		}
		s.fail(errType, text)
	}
	s.End()
}

func (o *acquisitions) appendAttrs(room []attribute.KeyValue, r *core.AcquireResult, outcome string) []attribute.KeyValue {
	room = append(room,
		o.spans.keys.attr(r.Key),
		attrOutcome.String(outcome),
		attrAttempts.Int(r.Attempts),
		attrReentry.Bool(r.Outcome == core.OutcomeReentered),
	)
	if r.Field != "" {
		room = append(room, attrHolder.String(r.Field))
	}
	if r.BlockedBy != "" {
		room = append(room, attrBlockedBy.String(valid(r.BlockedBy)))
	}
	return room
}

// begin starts the series of a rule at zero.
func (o *acquisitions) begin(ctx context.Context, r *rule) {
	o.inst.handoffs.Add(ctx, 0, r.labels.add...)
}

// collect reports the number of waiting callers of a rule.
func (o *acquisitions) collect(m metric.Observer, r *rule) {
	m.ObserveInt64(o.inst.waiters, r.waiting.Load(), r.observe...)
}
