package telemetry

import (
	"hash/maphash"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// endedBlockers is for how many holds that ended a waiter can still be linked: one that was
// handed the lock may be told so after the hold of the one who handed it over has ended.
const endedBlockers = 256

// blockers finds the span of a hold of this process by its holder field. It knows those that
// are held and record, and the last few that ended. Fields are hashed once: 64 bits that nobody
// can foresee.
type blockers struct {
	seed maphash.Seed

	mu    sync.Mutex
	spans map[uint64]trace.SpanContext
	ended [endedBlockers]uint64
	next  int
}

func newBlockers() *blockers {
	return &blockers{seed: maphash.MakeSeed(), spans: make(map[uint64]trace.SpanContext)}
}

// begin notes the span of a hold. One that goes on after a Handover takes the place of the
// other.
func (b *blockers) begin(field string, s trace.SpanContext) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	b.spans[hash] = s
	b.mu.Unlock()
}

// end lets the span of a hold be forgotten, some time. It is called once for each field.
func (b *blockers) end(field string) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	delete(b.spans, b.ended[b.next])
	b.ended[b.next] = hash
	b.next = (b.next + 1) % endedBlockers
	b.mu.Unlock()
}

// find gives the span of a hold, if it is known.
func (b *blockers) find(field string) (trace.SpanContext, bool) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.spans[hash]
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
