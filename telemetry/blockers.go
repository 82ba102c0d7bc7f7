package telemetry

import (
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// endedBlockers is for how many holds that ended a waiter can still be linked: the observers of a
// waiter that got the lock from a hold may be notified after the end of that hold.
const endedBlockers = 256

// blockers finds the span of a hold of this process by its holder field: of several holds that had
// the field one after the other, the last one. It knows the holds that last and record, and the last
// few that ended. Fields are hashed once: 64 bits that cannot be foreseen.
type blockers struct {
	seed maphash.Seed

	mu    sync.Mutex
	spans map[uint64]blocker
	ended [endedBlockers]endedBlocker
	next  int
}

// blocker is the span of a hold.
type blocker struct {
	span  trace.SpanContext
	ended time.Time // zero: the hold lasts
}

// endedBlocker says which blocker is to be forgotten.
type endedBlocker struct {
	hash uint64
	span trace.SpanID
}

func newBlockers() *blockers {
	return &blockers{seed: maphash.MakeSeed(), spans: make(map[uint64]blocker)}
}

// begin notes the span of a hold. It takes the place of an earlier hold with the same field,
// which has passed the lock on, or has moved by a Handover.
func (b *blockers) begin(field string, s trace.SpanContext) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	b.spans[hash] = blocker{span: s}
	b.mu.Unlock()
}

// end lets the span of a hold be forgotten, some time. It is called once for each hold.
func (b *blockers) end(field string, s trace.SpanID) {
	hash, now := maphash.String(b.seed, field), time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.spans[hash]; h.span.SpanID() == s {
		b.spans[hash] = blocker{h.span, now}
	}
	oldest := &b.ended[b.next]
	if b.spans[oldest.hash].span.SpanID() == oldest.span { // a later hold may have the field
		delete(b.spans, oldest.hash)
	}
	*oldest = endedBlocker{hash, s}
	b.next = (b.next + 1) % endedBlockers
}

// find gives the span of the hold of a field, if it is known and lasted at a time.
func (b *blockers) find(field string, at time.Time) (trace.SpanContext, bool) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	defer b.mu.Unlock()
	h, ok := b.spans[hash]
	return h.span, ok && (h.ended.IsZero() || !h.ended.Before(at))
}

// block has waiters linked to the span of a hold.
func (t *Telemetry) block(s *span, field string) {
	s.blocking.Store(true)
	t.blockers.begin(field, s.SpanContext())
}

// unblock ends that, at the release or the loss, whichever comes first: a hold that was lost
// may never be released.
func (t *Telemetry) unblock(s *span, field string) {
	if s.blocking.CompareAndSwap(true, false) {
		t.blockers.end(field, s.SpanContext().SpanID())
	}
}

// linkBlocker links the span of a waiter to the span of the hold in its way, if that is one of this
// process, lasted when the waiter came or later, and is not linked already.
func (t *Telemetry) linkBlocker(s *span, field string) {
	if field == "" {
		return
	}
	hold, ok := t.blockers.find(field, s.begun)
	if !ok || hold.SpanID() == s.linked {
		return
	}
	s.linked = hold.SpanID()
	s.AddLink(trace.Link{SpanContext: hold, Attributes: blockedBy(field)})
}
