package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// endedBlockers is for how many holds that ended a waiter can still be linked: one that was
// handed the lock may be told so after the hold of the one who handed it over has ended.
const endedBlockers = 256

// blockers finds the span of a hold of this process by its holder field. It knows those that
// are held and record, and the last few that ended. The zero value is empty.
type blockers struct {
	mu    sync.Mutex
	spans map[string]trace.SpanContext
	ended [endedBlockers]string
	next  int
}

// begin notes the span of a hold. One that goes on after a Handover takes the place of the
// other.
func (b *blockers) begin(field string, s trace.SpanContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spans == nil {
		b.spans = make(map[string]trace.SpanContext)
	}
	b.spans[field] = s
}

// end lets the span of a hold be forgotten, some time. It is called once for each field.
func (b *blockers) end(field string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.ended[b.next]; old != "" {
		delete(b.spans, old)
	}
	b.ended[b.next] = field
	b.next = (b.next + 1) % endedBlockers
}

// find gives the span of a hold, if it is known.
func (b *blockers) find(field string) (trace.SpanContext, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.spans[field]
	return s, ok
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
		t.blockers.end(field)
	}
}

// linkBlocker links the span of a waiter to that of the hold in its way, if that is one of this
// process and not linked already.
func (t *Telemetry) linkBlocker(s *span, field string) {
	if field == "" || field == s.linked {
		return
	}
	hold, ok := t.blockers.find(field)
	if !ok {
		return
	}
	s.linked = field
	s.AddLink(trace.Link{SpanContext: hold, Attributes: blockedBy(field)})
}
