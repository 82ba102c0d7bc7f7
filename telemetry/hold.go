package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// holds reports holds: the span lock.hold, the metrics hold.duration, lease.remaining.ratio, held, renewals, lost,
// held_too_long, leaks and release.failures, and log records about losses, leaks and failures.
type holds struct {
	inst  *instruments
	spans *spans
	log   *logger
}

// observeStart counts a hold and starts its span.
func (o *holds) observeStart(ctx context.Context, h core.HoldInfo) context.Context {
	rule := o.spans.rules.entry(h.Label, h.Kind)
	if !h.Reentrant {
		rule.held.Add(1)
	}
	if o.spans.tracer == nil {
		return ctx
	}
	ctx = o.spans.start(ctx, spanHold, rule, &h.Acquisition)
	if s, ok := ctx.(*span); ok && !h.Reentrant {
		o.spans.block(s, h.Field)
	}
	return ctx
}

// observeEnd counts the end of a hold and ends its span. After a Handover the next hold has a separate span,
// and the end of that hold is counted.
func (o *holds) observeEnd(ctx context.Context, r core.HoldResult) {
	s := o.spans.find(ctx, spanHold, &r.Acquisition)
	rule := o.spans.ruleOf(s, &r.Acquisition)
	outcome := holdOutcome(&r)
	subtractHeld(rule, &r.HoldInfo)
	if outcome != outcomeMoved {
		o.recordHeld(ctx, rule, r.Held, outcome)
		o.recordRemaining(ctx, rule, &r)
	}
	if outcome == outcomeFailed {
		o.inst.releaseFailures.Add(ctx, 1, rule.labels.add...)
		o.log.logHold(ctx, &o.log.release, rule.ruleID, &r.HoldInfo, r.Err)
	}
	if s == nil {
		return
	}
	if r.HandedOff {
		s.AddEvent(eventHandedOver)
	}
	if r.Lost || r.HeldTooLong {
		s.lose(r.HeldTooLong)
	}
	if outcome == outcomeFailed {
		s.fail(errorType(r.Err), "release failed")
	}
	o.endSpan(s, &r.HoldInfo, outcome)
}

func holdOutcome(r *core.HoldResult) string {
	switch {
	case r.Moved:
		return outcomeMoved
	case r.HeldTooLong && errors.Is(r.Err, core.ErrHeldTooLong):
		return outcomeHeldTooLong
	case r.Lost:
		return outcomeLost
	case r.Left && errors.Is(r.Err, core.ErrClosed):
		return outcomeLeft // the client was closed earlier, so there was nothing to release
	case r.Err != nil && !errors.Is(r.Err, core.ErrNotHeld):
		return outcomeFailed
	case r.Left:
		return outcomeLeft
	default:
		return outcomeReleased
	}
}

func subtractHeld(r *rule, h *core.HoldInfo) {
	if !h.Reentrant {
		r.held.Add(-1)
	}
}

func (o *holds) recordHeld(ctx context.Context, rule *rule, held time.Duration, outcome string) {
	if o.inst.hold.Enabled(ctx) {
		o.inst.hold.Record(ctx, held.Seconds(), rule.outcome(outcome).record...)
	}
}

// recordRemaining records how much of the lease was left. It records nothing for a re-entry, which ends no
// lease, and nothing for a hold whose client was closed or that was held for too long, because that lease was not
// renewed.
func (o *holds) recordRemaining(ctx context.Context, rule *rule, r *core.HoldResult) {
	if r.Reentrant || r.Lease <= 0 || r.HeldTooLong || errors.Is(r.Err, core.ErrClosed) || !o.inst.remaining.Enabled(ctx) {
		return
	}
	left := r.Remaining.Seconds() / r.Lease.Seconds()
	if r.Lost {
		left = 0
	}
	o.inst.remaining.Record(exemplarIf(ctx, left <= scarce), min(max(left, 0), 1), rule.labels.record...)
}

func (o *holds) endSpan(s *span, h *core.HoldInfo, outcome string) {
	if outcome != outcomeMoved {
		o.spans.unblock(s, h.Field)
	}
	o.spans.set(s, func(room []attribute.KeyValue) []attribute.KeyValue {
		return o.appendAttrs(room, h, outcome)
	})
	s.End()
}

func (o *holds) appendAttrs(room []attribute.KeyValue, h *core.HoldInfo, outcome string) []attribute.KeyValue {
	room = append(room,
		o.spans.keys.attr(h.Key),
		attrOutcome.String(outcome),
		attrReentry.Bool(h.Reentrant),
		attrHolder.String(h.Field),
	)
	if h.Token != 0 {
		room = append(room, attrToken.Int64(h.Token))
	}
	return room
}

// observeRenewal counts a renewal. A late or failed renewal adds an event to the span.
func (o *holds) observeRenewal(ctx context.Context, r core.Renewal) {
	rule := o.spans.rules.entry(r.Label, r.Kind)
	outcome := outcomeRenewed
	switch {
	case r.Err != nil:
		outcome = outcomeFailed
	case r.Late > 0:
		outcome = outcomeLate
	}
	o.inst.renewals.Add(ctx, 1, rule.outcome(outcome).add...)
	if outcome == outcomeRenewed {
		return
	}
	if s := o.spans.find(ctx, spanHold, &r.Acquisition); s != nil {
		addRenewalEvents(s, &r)
	}
	if r.Err != nil {
		o.log.logHold(ctx, &o.log.renewal, rule.ruleID, &r.HoldInfo, r.Err)
	}
}

func addRenewalEvents(s *span, r *core.Renewal) {
	if r.Late > 0 {
		s.AddEvent(eventRenewedLate, trace.WithAttributes(attrLate.Float64(r.Late.Seconds())))
	}
	if r.Err != nil {
		s.AddEvent(eventRenewalFailed, trace.WithAttributes(attrErrorType.String(errorType(r.Err))))
	}
}

// observeLoss counts a lost hold. Its span continues until the release. A hold that was held for too long has a separate
// counter, and still blocks other callers. A hold that Close left to its lease is not lost: observeLoss logs it, and the
// end of the hold counts it in hold.duration with the outcome left.
func (o *holds) observeLoss(ctx context.Context, l core.Loss) {
	rule := o.spans.rules.entry(l.Label, l.Kind)
	if !errors.Is(l.Cause, core.ErrLost) && errors.Is(l.Cause, core.ErrClosed) {
		o.log.logHold(ctx, &o.log.left, rule.ruleID, &l.HoldInfo, nil)
		return
	}
	s := o.spans.find(ctx, spanHold, &l.Acquisition)
	heldTooLong := errors.Is(l.Cause, core.ErrHeldTooLong)
	if s != nil {
		s.lose(heldTooLong)
	}
	if heldTooLong {
		o.inst.heldTooLong.Add(ctx, 1, rule.labels.add...)
		o.log.logHold(ctx, &o.log.heldTooLong, rule.ruleID, &l.HoldInfo, nil)
		return
	}
	o.inst.lost.Add(ctx, 1, rule.labels.add...)
	if s != nil {
		o.spans.unblock(s, l.Field)
	}
	o.log.logHold(ctx, &o.log.lost, rule.ruleID, &l.HoldInfo, l.Cause)
}

// observeLeak counts a hold that was never released and ends its span.
func (o *holds) observeLeak(ctx context.Context, h core.HoldInfo) {
	rule := o.spans.rules.entry(h.Label, h.Kind)
	subtractHeld(rule, &h)
	o.inst.leaks.Add(ctx, 1, rule.labels.add...)
	o.recordHeld(ctx, rule, time.Since(h.Acquired), outcomeLeaked)
	if s := o.spans.find(ctx, spanHold, &h.Acquisition); s != nil {
		s.fail(outcomeLeaked, "never released")
		o.endSpan(s, &h, outcomeLeaked)
	}
	o.log.logHold(ctx, &o.log.leaked, rule.ruleID, &h, nil)
}

// begin starts the series of a rule at zero.
func (o *holds) begin(ctx context.Context, r *rule) {
	for _, counter := range []metric.Int64Counter{o.inst.lost, o.inst.heldTooLong, o.inst.leaks, o.inst.releaseFailures} {
		counter.Add(ctx, 0, r.labels.add...)
	}
	for _, outcome := range []string{outcomeRenewed, outcomeLate, outcomeFailed} {
		o.inst.renewals.Add(ctx, 0, r.outcome(outcome).add...)
	}
}

// collect reports the number of holds of a rule that have not ended.
func (o *holds) collect(m metric.Observer, r *rule) {
	m.ObserveInt64(o.inst.held, r.held.Load(), r.observe...)
}
