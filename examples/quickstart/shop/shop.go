// Package shop is a small shop that sells from a stock, over Gin and over gRPC. Its
// business code (this file) reads and writes the stock as if it were alone; the
// rules beside the routes (http.go) and methods (grpc.go) see to it that it is.
package shop

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// Shop is one instance of the shop. Several share a stock.
type Shop struct {
	Stock  *Stock
	Locks  *core.Client
	Log    *slog.Logger
	Traces trace.TracerProvider
}

// buy sells one piece: it reads, charges the customer and writes. Two at a time
// would sell the same piece twice.
func (s *Shop) buy(ctx context.Context, item string) (left int, err error) {
	left, err = s.Stock.Read(ctx, item)
	if err != nil {
		return 0, err
	}
	if left <= 0 {
		return 0, ErrSoldOut
	}
	if err := charge(ctx); err != nil {
		return 0, err
	}
	return left - 1, s.Stock.Write(ctx, item, left-1)
}

func charge(ctx context.Context) error { return pause(ctx, time.Millisecond) }

// count counts the pieces on the shelf, which takes its time. It stops when the lock
// is lost under it: somebody may be buying by then, and the result would be wrong.
func (s *Shop) count(ctx context.Context, item string, takes time.Duration) (int, error) {
	if err := pause(ctx, takes); err != nil {
		s.Log.WarnContext(ctx, "handler stopped", "work", "count", "cause", context.Cause(ctx))
		return 0, err
	}
	return s.Stock.Read(ctx, item)
}

// exchange takes a broken piece back and sells another one. Its caller has the lock
// of the item; restock takes it again.
func (s *Shop) exchange(ctx context.Context, item string, takes time.Duration) (int, error) {
	if err := s.restock(ctx, item, 1, takes); err != nil {
		return 0, err
	}
	return s.buy(ctx, item)
}

// restock adds pieces. It takes the lock itself, because it also runs at night,
// without any middleware. Where ctx has the lock already, this is a re-entry.
func (s *Shop) restock(ctx context.Context, item string, pieces int, takes time.Duration) error {
	return s.Locks.Lock("stock:"+item).Do(ctx, func(ctx context.Context) error {
		left, err := s.Stock.Read(ctx, item)
		if err != nil {
			return err
		}
		if err := pause(ctx, takes); err != nil {
			return err
		}
		return s.Stock.Write(ctx, item, left+pieces)
	}, core.WaitTime(5*time.Second), core.Label("restock"))
}
