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

// span is a recording span of an acquisition or a hold. It is a context, because core passes nothing but a
// context from the observer of the start to the observer of the end.
type span struct {
	context.Context
	trace.Span

	owner   *spans
	rule    *rule
	name    string
	key     string
	started time.Time
	linked  trace.SpanID // the hold that was linked last; unguarded, because observers of one acquisition do not overlap
	lost    atomic.Bool

	blocking atomic.Bool // waiters are linked to the hold of this span
}

// spanKey is the context key of the innermost span of one Telemetry.
type spanKey struct{ owner *spans }

// Value returns s itself for the key of its owner.
func (s *span) Value(key any) any {
	if k, ok := key.(spanKey); ok && k.owner == s.owner {
		return s
	}
	return s.Context.Value(key)
}

// fail marks the span as an error. text is a fixed text, because errors name keys and addresses.
func (s *span) fail(errType, text string) {
	s.SetAttributes(attrErrorType.String(errType))
	s.SetStatus(codes.Error, text)
}

// lose adds the event of the loss, or of a hold that was held for too long, once. The release of a lost hold may end
// the span before the observer of the loss runs.
func (s *span) lose(heldTooLong bool) {
	if !s.lost.CompareAndSwap(false, true) {
		return
	}
	if heldTooLong {
		s.AddEvent(eventHeldTooLong)
		s.fail(outcomeHeldTooLong, "lock held too long")
		return
	}
	s.AddEvent(eventLost)
	s.fail(outcomeLost, "lock lost")
}

// spans starts spans, finds them in contexts, and links waiters to the holds that block them.
type spans struct {
	tracer   trace.Tracer // nil: no spans
	rules    *rules
	keys     *keyAttrs
	blockers *blockers
	room     sync.Pool // of *[]attribute.KeyValue for the attributes of one span, which SDKs copy
	roots    sync.Map  // of acquisitions without a parent, until their hold begins: from rootID to trace.SpanContext
}

// rootID identifies an acquisition.
type rootID struct {
	client, key string
	started     int64
}

func rootOf(a *core.Acquisition) rootID { return rootID{a.ClientID, a.Key, a.Start.UnixNano()} }

// start starts a span and returns its context. If the span does not record, the context is the tracer's.
// Children then inherit the sampling decision, and later observers find no span.
//
// A hold without a parent becomes a child of its acquisition, so that the two spans of a job are one trace.
func (p *spans) start(ctx context.Context, name string, rule *rule, a *core.Acquisition) context.Context {
	root := !trace.SpanContextFromContext(ctx).IsValid()
	if root && name == spanHold {
		if acquire, ok := p.roots.LoadAndDelete(rootOf(a)); ok {
			ctx = trace.ContextWithSpanContext(ctx, acquire.(trace.SpanContext)) //nolint:errcheck,forcetypeassert // roots has no other values
		}
	}
	ctx, s := p.tracer.Start(ctx, name, rule.spanStart...)
	isHeld := a.Kind != core.KindPlainSemaphore && a.Kind != core.KindLatch // a count has no holders
	if root && name == spanAcquire && isHeld && s.SpanContext().IsValid() {
		p.roots.Store(rootOf(a), s.SpanContext())
	}
	if !s.SpanContext().IsSampled() && !s.IsRecording() { // IsSampled is cheaper
		return ctx
	}
	return &span{Context: ctx, Span: s, owner: p, rule: rule, name: name, key: a.Key, started: a.Start}
}

// find returns the span of an acquisition or its hold, or nil if it does not record. Contexts nest, so the
// innermost span may belong to another acquisition.
func (p *spans) find(ctx context.Context, name string, a *core.Acquisition) *span {
	if p.tracer == nil {
		return nil
	}
	s, ok := ctx.Value(spanKey{owner: p}).(*span)
	if !ok || s.name != name || s.key != a.Key || !s.started.Equal(a.Start) {
		return nil
	}
	return s
}

// ruleOf returns the rule of an acquisition. s is its span, or nil.
func (p *spans) ruleOf(s *span, a *core.Acquisition) *rule {
	if s != nil {
		return s.rule
	}
	return p.rules.entry(a.Label, a.Kind)
}

// set gives s the attributes that fill appends.
func (p *spans) set(s *span, fill func(room []attribute.KeyValue) []attribute.KeyValue) {
	room, ok := p.room.Get().(*[]attribute.KeyValue)
	if !ok {
		room = new([]attribute.KeyValue)
	}
	*room = fill((*room)[:0])
	s.SetAttributes(*room...)
	clear(*room)
	p.room.Put(room)
}

// block permits links from waiters to the span of a hold.
func (p *spans) block(s *span, field string) {
	s.blocking.Store(true)
	p.blockers.begin(field, s.SpanContext())
}

// unblock stops further links to the span of a hold. It is called at the release or at the loss, whichever
// is first, because a lost hold may never be released.
func (p *spans) unblock(s *span, field string) {
	if s.blocking.CompareAndSwap(true, false) {
		p.blockers.end(field, s.SpanContext().SpanID())
	}
}

// link links the span of a waiter to the span of the hold that blocks it. It does nothing if the hold belongs
// to another process, ended before the waiter came, or is already linked.
func (p *spans) link(s *span, field string) {
	if field == "" {
		return
	}
	hold, ok := p.blockers.find(field, s.started)
	if !ok || hold.SpanID() == s.linked {
		return
	}
	s.linked = hold.SpanID()
	s.AddLink(trace.Link{SpanContext: hold, Attributes: blockedByAttrs(field)})
}

func blockedByAttrs(field string) []attribute.KeyValue {
	return []attribute.KeyValue{attrBlockedBy.String(valid(field))}
}
