package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// span is a span of ours that records, found again by the observer that ends it. It
// is a context because that is the only thing which core carries from start to end.
type span struct {
	context.Context
	trace.Span

	owner  *Telemetry
	rule   *rule
	name   string
	key    string
	begun  time.Time
	linked trace.SpanID // of the hold that was linked last; an acquisition's calls follow each other
	lost   atomic.Bool

	blocking atomic.Bool // a hold that waiters are linked to
}

// spanKey finds the innermost span of one Telemetry in a context.
type spanKey struct{ owner *Telemetry }

// Value is that of the context, and the span itself.
func (s *span) Value(key any) any {
	if k, ok := key.(spanKey); ok && k.owner == s.owner {
		return s
	}
	return s.Context.Value(key)
}

// start begins a span. One that does not record has nothing to be told later, but
// its context is passed on: children inherit that they are not sampled.
func (t *Telemetry) start(ctx context.Context, name string, r *rule, a *core.Acquisition) context.Context {
	ctx, s := t.tracer.Start(ctx, name, r.spanStart...)
	if !s.SpanContext().IsSampled() && !s.IsRecording() { // the first answer is the cheaper one
		return ctx
	}
	return &span{Context: ctx, Span: s, owner: t, rule: r, name: name, key: a.Key, begun: a.Start}
}

// spanOf finds the span of an acquisition or its hold, nil if it does not record.
// Contexts nest: a span of another acquisition may be further out.
func (t *Telemetry) spanOf(ctx context.Context, name string, a *core.Acquisition) *span {
	if t.tracer == nil {
		return nil
	}
	s, ok := ctx.Value(spanKey{owner: t}).(*span)
	if !ok || s.name != name || s.key != a.Key || !s.begun.Equal(a.Start) {
		return nil
	}
	return s
}

// ruleOf is the rule of an acquisition, which its span has, if it records.
func (t *Telemetry) ruleOf(s *span, a *core.Acquisition) *rule {
	if s != nil {
		return s.rule
	}
	return t.rule(a.Label, a.Kind)
}

// fail marks the span as an error. text is fixed: errors name keys and addresses.
func (s *span) fail(errType, text string) {
	s.SetAttributes(attrErrorType.String(errType))
	s.SetStatus(codes.Error, text)
}

// failBackend is fail for an acquisition that Redis had no lock for.
func (s *span) failBackend(errType string) {
	if errType == errorWrongType {
		s.fail(errType, "key holds no lock")
		return
	}
	s.fail(errType, "redis unavailable")
}

// lose notes the loss once: the release of a lost hold may end the span before the
// loss itself was told.
func (s *span) lose() {
	if s.lost.CompareAndSwap(false, true) {
		s.AddEvent(eventLost)
		s.fail(outcomeLost, "lock lost")
	}
}

// attrPool lends room for the attributes of one span: SDKs copy them.
type attrPool struct{ free sync.Pool }

// set gives s the attributes that fill appends.
func (p *attrPool) set(s *span, fill func(room []attribute.KeyValue) []attribute.KeyValue) {
	room, ok := p.free.Get().(*[]attribute.KeyValue)
	if !ok {
		room = new([]attribute.KeyValue)
	}
	*room = fill((*room)[:0])
	s.SetAttributes(*room...)
	clear(*room)
	p.free.Put(room)
}
