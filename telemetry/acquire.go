package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// observeAcquireStart begins the span of an acquisition.
func (t *Telemetry) observeAcquireStart(ctx context.Context, a core.Acquisition) context.Context {
	if t.tracer == nil {
		return ctx
	}
	return t.start(ctx, spanAcquire, t.rule(a.Label, a.Kind), &a)
}

// observeContention counts a waiter and notes the holder.
func (t *Telemetry) observeContention(ctx context.Context, c core.Contention) {
	s := t.spanOf(ctx, spanAcquire, &c.Acquisition)
	t.ruleOf(s, &c.Acquisition).waiting.Add(1)
	if s == nil {
		return
	}
	if c.BlockedBy == "" {
		s.AddEvent(eventContended)
		return
	}
	s.AddEvent(eventContended, trace.WithAttributes(blockedBy(c.BlockedBy)...))
	t.linkBlocker(s, c.BlockedBy)
}

func blockedBy(field string) []attribute.KeyValue {
	return []attribute.KeyValue{attrBlockedBy.String(valid(field))}
}

// observeAcquireEnd counts an acquisition and ends its span.
func (t *Telemetry) observeAcquireEnd(ctx context.Context, r core.AcquireResult) {
	s := t.spanOf(ctx, spanAcquire, &r.Acquisition)
	rule := t.ruleOf(s, &r.Acquisition)
	outcome := rule.acquireOutcome(r.Outcome)
	t.recordAcquire(ctx, rule, &r, outcome)
	if s != nil {
		t.endAcquire(s, &r, outcome)
	}
	t.logAcquire(ctx, rule, &r)
}

func (t *Telemetry) recordAcquire(ctx context.Context, rule *rule, r *core.AcquireResult, outcome string) {
	if r.Contended {
		rule.waiting.Add(-1)
	}
	if t.inst.wait.Enabled(ctx) {
		t.inst.wait.Record(ctx, r.Waited.Seconds(), rule.outcome(outcome).record...)
	}
	if r.RoundTrip > 0 && !r.Contended {
		t.inst.acquire.Record(exemplarIf(ctx, r.RoundTrip >= slowTrip), r.RoundTrip.Seconds(), rule.labels.record...)
	}
	if r.HandedOff {
		t.inst.handoffs.Add(ctx, 1, rule.labels.add...)
	}
}

// acquireOutcome is what the outcome of core is called under the rule.
func (r *rule) acquireOutcome(o core.Outcome) string {
	if o == core.OutcomeBusy && r.debounced.Load() {
		return outcomeDebounced
	}
	return string(o)
}

func (t *Telemetry) endAcquire(s *span, r *core.AcquireResult, outcome string) {
	t.attrs.set(s, func(room []attribute.KeyValue) []attribute.KeyValue {
		return t.acquireSpanAttrs(room, r, outcome)
	})
	t.linkBlocker(s, r.BlockedBy)
	if r.HandedOff {
		s.AddEvent(eventHandedOver)
	}
	if r.Outcome == core.OutcomeBackend {
		s.failBackend(errorType(r.Err))
	}
	s.End()
}

func (t *Telemetry) acquireSpanAttrs(room []attribute.KeyValue, r *core.AcquireResult, outcome string) []attribute.KeyValue {
	room = append(room,
		t.keyAttr(r.Key),
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

// logAcquire logs the acquisitions that somebody should look at.
func (t *Telemetry) logAcquire(ctx context.Context, rule *rule, r *core.AcquireResult) {
	switch {
	case r.Outcome == core.OutcomeBackend:
		t.logBackend(ctx, rule, r)
	case t.longWait > 0 && r.Waited >= t.longWait:
		t.logLongWait(ctx, rule, r)
	}
}

// Each acquisition leads to its trace by the exemplars of wait.duration and hold.duration. The
// other histograms have exemplars only of values that somebody asks about: an exemplar costs as
// much as the value.
const (
	slowTrip = time.Millisecond // a round trip from which on Redis is slow
	scarce   = 0.5              // so little of a lease was left
)

// exemplarIf gives the context to record with: without a span there is no exemplar.
func exemplarIf(ctx context.Context, wanted bool) context.Context {
	if wanted {
		return ctx
	}
	return context.Background() //nolint:forbidigo // one without a span
}
