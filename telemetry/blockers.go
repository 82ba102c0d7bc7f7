package telemetry

import (
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// endedBlockers is the number of ended holds that are kept. They are needed because, if a hold passes its lock
// to a waiter, the observers of the waiter may be notified after the end of the hold.
const endedBlockers = 256

// blockers finds the span of a hold of this process by its holder field. If several holds had the field one
// after the other, it finds the last one. It contains the holds that have a recording span and have not
// ended, and the last few that have ended. It stores a seeded 64-bit hash of each field.
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
	ended time.Time // zero: the hold has not ended
}

// endedBlocker is an ended hold, which will be removed.
type endedBlocker struct {
	hash uint64
	span trace.SpanID
}

func newBlockers() *blockers {
	return &blockers{seed: maphash.MakeSeed(), spans: make(map[uint64]blocker)}
}

// begin adds the span of a hold. It replaces an earlier hold with the same field, which passed the lock on
// or was handed over.
func (b *blockers) begin(field string, s trace.SpanContext) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	b.spans[hash] = blocker{span: s}
	b.mu.Unlock()
}

// end marks a hold as ended and removes the hold that ended longest ago. It is called once for each hold.
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

// find returns the span of the hold with a field, if blockers contains it and it had not ended at the
// given time.
func (b *blockers) find(field string, at time.Time) (trace.SpanContext, bool) {
	hash := maphash.String(b.seed, field)
	b.mu.Lock()
	defer b.mu.Unlock()
	h, ok := b.spans[hash]
	return h.span, ok && (h.ended.IsZero() || !h.ended.Before(at))
}
