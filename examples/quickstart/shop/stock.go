package shop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// ErrSoldOut means that no piece of an item is left.
var ErrSoldOut = errors.New("sold out")

// Stock is the database of the shop: the number of pieces of each item that are left. All
// instances share it. Each read and each write is atomic and takes the time of a round trip. But
// a read and the write after it are not one transaction, as with
//
//	SELECT pieces FROM stock WHERE item = …
//	UPDATE stock SET pieces = … WHERE item = …
//
// A caller that changes an item must exclude other callers.
type Stock struct {
	tracer trace.Tracer
	writes atomic.Int64

	mu     sync.Mutex
	pieces map[string]int
}

// roundTrip is the time that a read or a write takes.
const roundTrip = time.Millisecond

// NewStock returns an empty stock.
func NewStock(tracer trace.Tracer) *Stock {
	return &Stock{tracer: tracer, pieces: map[string]int{}}
}

// Read returns the number of pieces of an item that are left.
func (s *Stock) Read(ctx context.Context, item string) (int, error) {
	ctx, span := s.tracer.Start(ctx, "stock.read")
	defer span.End()
	if err := pause(ctx, roundTrip); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pieces[item], nil
}

// Write sets the number of pieces of an item that are left.
func (s *Stock) Write(ctx context.Context, item string, pieces int) error {
	ctx, span := s.tracer.Start(ctx, "stock.write", trace.WithAttributes(attribute.Int("pieces", pieces)))
	defer span.End()
	if err := pause(ctx, roundTrip); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces[item] = pieces
	s.writes.Add(1)
	return nil
}

// Writes returns the number of calls of Write, for all items.
func (s *Stock) Writes() int64 { return s.writes.Load() }

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
