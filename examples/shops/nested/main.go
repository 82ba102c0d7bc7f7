// Nested runs two services that lock the same order. One calls the other.
//
//	go -C examples run ./shops/nested
//
// The context carries the lock. Pay locks order:42 and calls the stock service with its
// context. Reserve finds the lock in the context and re-enters it, which Redis shows as a
// count of 2. A goroutine with that context also re-enters. A goroutine with a detached
// context does not, and neither does any other request.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
)

type order struct{ ID string }

func main() { proof.Main("nested", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	locks, err := p.Locks(ctx)
	if err != nil {
		return err
	}
	locking, err := aspect.New(locks)
	if err != nil {
		return err
	}
	stock, err := newStockService(locks, locking)
	if err != nil {
		return err
	}
	orders, err := newOrderService(locks, locking, stock)
	if err != nil {
		return err
	}

	p.Titlef("pay locks order:42, and reserve locks order:42")
	paid, err := orders.Pay(ctx, order{ID: "42"})
	if err != nil {
		return err
	}
	p.Checkf(paid.before == 1, "in Pay:              count %d", paid.before)
	p.Checkf(paid.inReserve == 2, "in Reserve:          count %d, re-entered", paid.inReserve)
	p.Checkf(paid.inGoroutine == 2, "Reserve, goroutine:  count %d, re-entered", paid.inGoroutine)
	p.Checkf(errors.Is(paid.detached, core.ErrNotAcquired), "Reserve, detached:   %v", paid.detached)
	p.Checkf(paid.after == 1, "back in Pay:         count %d, still held", paid.after)

	free, err := count(ctx, locks, "42")
	p.Checkf(err == nil && free == 0, "after Pay:           count %d, free", free)
	alone, err := stock.Reserve(ctx, order{ID: "42"})
	p.Checkf(err == nil && alone == 1, "Reserve on its own:  count %d", alone)
	return nil
}

// locked wraps a function in the rule of both services. The function works whether or not its
// caller already holds the lock.
func locked[Out any](a *aspect.Aspect, name string, fn func(context.Context, order) (Out, error)) (func(context.Context, order) (Out, error), error) {
	return aspect.Wrap(a, ruleset.Rule{Name: name, Key: "order:#{in.ID}", WaitTime: 200 * time.Millisecond}, fn)
}

type stockService struct {
	Reserve func(context.Context, order) (count int, err error)
}

func newStockService(locks *core.Client, a *aspect.Aspect) (s *stockService, err error) {
	s = &stockService{}
	s.Reserve, err = locked(a, "stock.reserve", func(ctx context.Context, o order) (int, error) {
		return count(ctx, locks, o.ID)
	})
	return s, err
}

// payment records the observations of Pay and Reserve.
type payment struct {
	before, inReserve, inGoroutine, after int   // hold counts in Redis
	detached                              error // the error of the attempt with a detached context
}

type orderService struct {
	Pay func(context.Context, order) (payment, error)
}

func newOrderService(locks *core.Client, a *aspect.Aspect, stock *stockService) (s *orderService, err error) {
	s = &orderService{}
	s.Pay, err = locked(a, "order.pay", func(ctx context.Context, o order) (seen payment, err error) {
		var errs [4]error
		seen.before, errs[0] = count(ctx, locks, o.ID)
		seen.inReserve, errs[1] = stock.Reserve(ctx, o)

		done := make(chan struct{})
		go func() {
			defer close(done)
			seen.inGoroutine, errs[2] = stock.Reserve(ctx, o)
			_, seen.detached = stock.Reserve(core.Detach(ctx), o)
		}()
		<-done // work under the lock must end before the release

		seen.after, errs[3] = count(ctx, locks, o.ID)
		return seen, errors.Join(errs[:]...)
	})
	return s, err
}

// count returns the hold count of the order in Redis.
func count(ctx context.Context, locks *core.Client, id string) (n int, err error) {
	state, err := locks.Lock("order:" + id).State(ctx)
	for _, times := range state.Holders { // one holder, or none if the lock is free
		n += times
	}
	return n, err
}
