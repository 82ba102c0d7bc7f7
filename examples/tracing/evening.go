package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/examples/wiring"
)

// evening counts the stock and orders two spoons during the count, all in one trace.
func evening(ctx context.Context, all *traces, shop *shop, stock *stock) (trace.TraceID, error) {
	provider, err := all.provider(ctx, "customers")
	if err != nil {
		return trace.TraceID{}, err
	}
	ctx, span := provider.Tracer("evening").Start(ctx, "evening")
	defer span.End()
	id := span.SpanContext().TraceID()

	conn, err := grpc.NewClient(stock.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), wiring.Traced(provider))
	if err != nil {
		return id, err
	}
	defer conn.Close()
	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	begin := func(do func(context.Context) error) {
		running.Go(func() {
			if err := do(ctx); err != nil {
				fail(err)
			}
		})
	}
	begin(func(ctx context.Context) error {
		_, err := shoppb.NewShopClient(conn).Count(ctx, &shoppb.CountRequest{Item: "spoon"})
		return err
	})
	steps := []struct {
		reached <-chan struct{}
		then    func()
	}{
		{stock.counting, func() { begin(shop.order) }},
		{shop.contended, func() { close(stock.counted) }},
		{stock.taking, func() { begin(shop.order) }}, // the first order has the lock
		{shop.contended, func() { close(stock.taken) }},
	}
	for _, step := range steps {
		select {
		case <-step.reached:
			step.then()
		case <-ctx.Done():
			return id, context.Cause(ctx)
		}
	}
	running.Wait()
	return id, context.Cause(ctx)
}

// order orders a spoon and sends its trace.
func (s *shop) order(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/items/spoon/order", http.NoBody)
	if err != nil {
		return err
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the order was answered with %s", answer.Status)
	}
	return nil
}
