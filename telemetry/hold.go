package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// observeHoldStart counts a hold and begins its span.
func (t *Telemetry) observeHoldStart(ctx context.Context, h core.HoldInfo) context.Context {
	rule := t.rule(h.Label, h.Kind)
	if !h.Reentrant {
		rule.held.Add(1)
	}
	if t.tracer == nil {
		return ctx
	}
	ctx = t.start(ctx, spanHold, rule, &h.Acquisition)
	if s, ok := ctx.(*span); ok && !h.Reentrant {
		t.block(s, h.Field)
	}
	return ctx
}

// observeHoldEnd counts the end of a hold and ends its span. The hold that goes on
// after a Handover has a span of its own, and is counted with its own end.
func (t *Telemetry) observeHoldEnd(ctx context.Context, r core.HoldResult) {
	s := t.spanOf(ctx, spanHold, &r.Acquisition)
	rule := t.ruleOf(s, &r.Acquisition)
	outcome := holdOutcome(&r)
	rule.endHold(&r.HoldInfo)
	if outcome != outcomeMoved {
		t.recordHold(ctx, rule, r.Held, outcome)
		t.recordRemaining(ctx, rule, &r)
	}
	if outcome == outcomeFailed {
		t.inst.releaseFailures.Add(ctx, 1, rule.labels.add...)
		t.logHold(ctx, &t.log.release, rule, &r.HoldInfo, r.Err)
	}
	if s != nil {
		s.released(&r, outcome)
		t.endHoldSpan(s, &r.HoldInfo, outcome)
	}
}

// released notes how a release went.
func (s *span) released(r *core.HoldResult, outcome string) {
	if r.HandedOff {
		s.AddEvent(eventHandedOver)
	}
	if r.Lost {
		s.lose()
	}
	if outcome == outcomeFailed {
		s.fail(errorType(r.Err), "release failed")
	}
}

func holdOutcome(r *core.HoldResult) string {
	switch {
	case r.Moved:
		return outcomeMoved
	case r.Lost:
		return outcomeLost
	case r.Left && errors.Is(r.Err, core.ErrClosed):
		return outcomeLeft // the client was closed under it: there was nothing to release
	case r.Err != nil && !errors.Is(r.Err, core.ErrNotHeld):
		return outcomeFailed
	case r.Left:
		return outcomeLeft
	default:
		return outcomeReleased
	}
}

func (r *rule) endHold(h *core.HoldInfo) {
	if !h.Reentrant {
		r.held.Add(-1)
	}
}

func (t *Telemetry) recordHold(ctx context.Context, rule *rule, held time.Duration, outcome string) {
	if t.inst.hold.Enabled(ctx) {
		t.inst.hold.Record(ctx, held.Seconds(), rule.outcome(outcome).record...)
	}
}

// recordRemaining records how much of the lease was left. A re-entry ends no lease, and one that
// was not renewed because its client was closed says nothing of others.
func (t *Telemetry) recordRemaining(ctx context.Context, rule *rule, r *core.HoldResult) {
	if r.Reentrant || r.Lease <= 0 || errors.Is(r.Err, core.ErrClosed) || !t.inst.remaining.Enabled(ctx) {
		return
	}
	left := r.Remaining.Seconds() / r.Lease.Seconds()
	if r.Lost {
		left = 0
	}
	t.inst.remaining.Record(exemplarIf(ctx, left <= scarce), min(max(left, 0), 1), rule.labels.record...)
}

func (t *Telemetry) endHoldSpan(s *span, h *core.HoldInfo, outcome string) {
	if outcome != outcomeMoved {
		t.unblock(s, h.Field)
	}
	t.attrs.set(s, func(room []attribute.KeyValue) []attribute.KeyValue {
		return t.holdSpanAttrs(room, h, outcome)
	})
	s.End()
}

func (t *Telemetry) holdSpanAttrs(room []attribute.KeyValue, h *core.HoldInfo, outcome string) []attribute.KeyValue {
	room = append(room,
		t.keyAttr(h.Key),
		attrOutcome.String(outcome),
		attrReentry.Bool(h.Reentrant),
		attrHolder.String(h.Field),
	)
	if h.Token != 0 {
		room = append(room, attrToken.Int64(h.Token))
	}
	return room
}

// observeRenewal counts a renewal and notes on the span those that were not as they
// should be.
func (t *Telemetry) observeRenewal(ctx context.Context, r core.Renewal) {
	rule := t.rule(r.Label, r.Kind)
	outcome := outcomeRenewed
	switch {
	case r.Err != nil:
		outcome = outcomeFailed
	case r.Late > 0:
		outcome = outcomeLate
	}
	t.inst.renewals.Add(ctx, 1, rule.outcome(outcome).add...)
	if outcome == outcomeRenewed {
		return
	}
	if s := t.spanOf(ctx, spanHold, &r.Acquisition); s != nil {
		s.renewed(&r)
	}
	if r.Err != nil {
		t.logHold(ctx, &t.log.renewal, rule, &r.HoldInfo, r.Err)
	}
}

func (s *span) renewed(r *core.Renewal) {
	if r.Late > 0 {
		s.AddEvent(eventRenewedLate, trace.WithAttributes(attrLate.Float64(r.Late.Seconds())))
	}
	if r.Err != nil {
		s.AddEvent(eventRenewalFailed, trace.WithAttributes(attrErrorType.String(errorType(r.Err))))
	}
}

// observeLoss counts a lost hold. Its span goes on until the release. One that the end of its
// client has left to its lease is not lost: that is logged, and counted when it is released.
func (t *Telemetry) observeLoss(ctx context.Context, l core.Loss) {
	rule := t.rule(l.Label, l.Kind)
	if !errors.Is(l.Cause, core.ErrLost) && errors.Is(l.Cause, core.ErrClosed) {
		t.logHold(ctx, &t.log.left, rule, &l.HoldInfo, nil)
		return
	}
	t.inst.lost.Add(ctx, 1, rule.labels.add...)
	if s := t.spanOf(ctx, spanHold, &l.Acquisition); s != nil {
		s.lose()
		t.unblock(s, l.Field)
	}
	t.logHold(ctx, &t.log.lost, rule, &l.HoldInfo, l.Cause)
}

// observeLeak counts a hold that was never released as ended.
func (t *Telemetry) observeLeak(ctx context.Context, h core.HoldInfo) {
	rule := t.rule(h.Label, h.Kind)
	rule.endHold(&h)
	t.inst.leaks.Add(ctx, 1, rule.labels.add...)
	t.recordHold(ctx, rule, time.Since(h.Acquired), outcomeLeaked)
	if s := t.spanOf(ctx, spanHold, &h.Acquisition); s != nil {
		s.fail(outcomeLeaked, "never released")
		t.endHoldSpan(s, &h, outcomeLeaked)
	}
	t.logHold(ctx, &t.log.leaked, rule, &h, nil)
}
