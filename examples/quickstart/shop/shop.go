// Package shop implements a small shop that sells from a stock, over Gin and over gRPC. Its
// business code (this file) reads and writes the stock as if no other caller existed. The rules
// of the routes (http.go) and methods (grpc.go) exclude other callers.
package shop

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// Shop is an instance of the shop. Several instances share a stock.
type Shop struct {
	Stock  *Stock
	Locks  *core.Client
	Log    *slog.Logger
	Traces trace.TracerProvider
}

// buy sells one piece: it reads, charges the customer and writes. Two calls at the same
// time would sell the same piece twice.
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

// count counts the pieces on the shelf, which takes a while. It stops if it loses the lock,
// because another caller may then buy a piece, and the result would be wrong.
func (s *Shop) count(ctx context.Context, item string, takes time.Duration) (int, error) {
	if err := pause(ctx, takes); err != nil {
		s.Log.WarnContext(ctx, "handler stopped", "work", "count", "cause", context.Cause(ctx))
		return 0, err
	}
	return s.Stock.Read(ctx, item)
}

// exchange takes a broken piece back and sells another one. Its caller holds the lock of
// the item, and restock acquires it again.
func (s *Shop) exchange(ctx context.Context, item string, takes time.Duration) (int, error) {
	if err := s.restock(ctx, item, 1, takes); err != nil {
		return 0, err
	}
	return s.buy(ctx, item)
}

// restock adds pieces. It acquires the lock itself, because it also runs at night without a
// middleware. If ctx already carries the lock, restock re-enters it.
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
