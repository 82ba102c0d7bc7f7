package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// keeper is an exporter that keeps spans in memory. It is safe for concurrent use.
type keeper struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

// ExportSpans keeps the spans.
func (k *keeper) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

// Shutdown does nothing.
func (k *keeper) Shutdown(context.Context) error { return nil }

// all returns the spans so far, sorted by their start.
func (k *keeper) all() []sdktrace.ReadOnlySpan {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.spans)
	slices.SortStableFunc(all, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return all
}

// print writes the spans as a tree, each with its start, its duration and its attributes about
// locks.
func (k *keeper) print(out io.Writer) error {
	p := &printer{out: out, spans: k.all()}
	for _, s := range p.spans {
		if !s.Parent().IsValid() {
			p.span(s, s.StartTime(), 0)
		}
	}
	return p.err
}

// printer writes lines and keeps the first error.
type printer struct {
	out   io.Writer
	spans []sdktrace.ReadOnlySpan
	err   error
}

func (p *printer) linef(depth int, format string, args ...any) {
	_, err := fmt.Fprintf(p.out, strings.Repeat("  ", depth)+format+"\n", args...)
	if p.err == nil {
		p.err = err
	}
}

// span writes a span and its descendants.
func (p *printer) span(s sdktrace.ReadOnlySpan, begin time.Time, depth int) {
	p.linef(depth, "%s: %s  at %s for %s%s", service(s), s.Name(), ms(s.StartTime().Sub(begin)), ms(s.EndTime().Sub(s.StartTime())), words(s.Attributes()))
	for _, e := range s.Events() {
		p.linef(depth+2, "- %s at %s%s", e.Name, ms(e.Time.Sub(begin)), words(e.Attributes))
	}
	for _, l := range s.Links() {
		p.linef(depth+2, "- link to %s%s", p.named(l.SpanContext), words(l.Attributes))
	}
	for _, below := range p.spans {
		if below.Parent().SpanID() == s.SpanContext().SpanID() {
			p.span(below, begin, depth+1)
		}
	}
}

// named returns the name of the span that a link points to.
func (p *printer) named(link trace.SpanContext) string {
	i := slices.IndexFunc(p.spans, func(s sdktrace.ReadOnlySpan) bool { return s.SpanContext().SpanID() == link.SpanID() })
	if i < 0 {
		return link.SpanID().String()
	}
	return service(p.spans[i]) + ": " + p.spans[i].Name()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// words returns the attributes about locks, without their prefix.
func words(attrs []attribute.KeyValue) string {
	var b strings.Builder
	for _, kv := range attrs {
		if name, ok := strings.CutPrefix(string(kv.Key), "distributed_lock."); ok {
			fmt.Fprintf(&b, " %s=%s", name, kv.Value.String())
		}
	}
	return b.String()
}

// service returns the service.name of a span.
func service(s sdktrace.ReadOnlySpan) string {
	name, _ := s.Resource().Set().Value("service.name")
	return name.AsString()
}
