package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
)

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
