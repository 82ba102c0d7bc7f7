package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// showTrace buys a spatula while another instance counts them and prints the trace.
func showTrace(ctx context.Context, d *demo) (string, error) {
	const work = "/items/spatula/count?for=300ms"
	if err := d.stock.Write(ctx, "spatula", 1); err != nil {
		return "", err
	}
	parent := newTrace()
	d.spans.record(parent.TraceID())
	count := inBackground(func() (*httpAnswer, error) { return d.gin[1].post(ctx, work, nil) })
	if _, err := d.await(ctx, "spatula", count.done, isHeld); err != nil {
		return "", err
	}
	header := http.Header{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, parent), propagation.HeaderCarrier(header))
	d.out.commandf("curl -X POST -H 'traceparent: %s' http://%s/items/spatula/buy", header.Get("Traceparent"), d.gin[0].addr)
	if _, err := d.gin[0].post(ctx, "/items/spatula/buy", header); err != nil {
		return "", err
	}
	if _, err := count.wait(); err != nil {
		return "", err
	}
	return d.checkTrace(ctx, parent.SpanID())
}

func (d *demo) checkTrace(ctx context.Context, parent trace.SpanID) (string, error) {
	const want = "POST /items/:item/buy(lock.acquire lock.hold(stock.read stock.write))"
	if err := d.awaitSpan(ctx, parent); err != nil {
		return "", err
	}
	d.out.linef("%s", d.spans.tree(parent, 0))
	if shape := d.spans.shape(parent); shape != want {
		return shape, fmt.Errorf("the trace is %s, want %s", shape, want)
	}
	return "acquire, hold(read, write)", nil
}

// awaitSpan waits until the span of the request has ended, which is after the answer.
func (d *demo) awaitSpan(ctx context.Context, parent trace.SpanID) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(d.spans.children(parent)) == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("the request's span did not end")
		}
	}
	return nil
}

// newTrace returns the trace that the customer starts.
func newTrace() trace.SpanContext {
	var id [24]byte
	_, _ = rand.Read(id[:]) // Read never fails
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID(id[:16]),
		SpanID:     trace.SpanID(id[16:]),
		TraceFlags: trace.FlagsSampled,
		Remote:     true,
	})
}
