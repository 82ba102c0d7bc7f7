package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spanRecorder is an exporter that keeps the spans of one trace.
type spanRecorder struct {
	mu    sync.Mutex
	trace trace.TraceID
	spans []sdktrace.ReadOnlySpan
}

// record keeps the spans of a trace from now on.
func (r *spanRecorder) record(id trace.TraceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace, r.spans = id, nil
}

// ExportSpans keeps the spans of the trace.
func (r *spanRecorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spans {
		if s.SpanContext().TraceID() == r.trace {
			r.spans = append(r.spans, s)
		}
	}
	return nil
}

// Shutdown does nothing.
func (r *spanRecorder) Shutdown(context.Context) error { return nil }

// children returns the ended children of a span, sorted by their start.
func (r *spanRecorder) children(parent trace.SpanID) []sdktrace.ReadOnlySpan {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []sdktrace.ReadOnlySpan
	for _, s := range r.spans {
		if s.Parent().SpanID() == parent {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return found
}

// tree returns the descendants of a span, one per line, indented.
func (r *spanRecorder) tree(parent trace.SpanID, depth int) string {
	var b strings.Builder
	for _, s := range r.children(parent) {
		margin := strings.Repeat("  ", depth)
		fmt.Fprintf(&b, "%-30s %8.1f ms\n", margin+s.Name(), s.EndTime().Sub(s.StartTime()).Seconds()*1000)
		b.WriteString(details(s, margin+"  "))
		b.WriteString(r.tree(s.SpanContext().SpanID(), depth+1))
	}
	return b.String()
}

// shape returns the names of the same spans: "a(b c(d))".
func (r *spanRecorder) shape(parent trace.SpanID) string {
	var names []string
	for _, s := range r.children(parent) {
		name := s.Name()
		if below := r.shape(s.SpanContext().SpanID()); below != "" {
			name += "(" + below + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// details returns the attributes and events of a span of a lock.
func details(s sdktrace.ReadOnlySpan, margin string) string {
	var b strings.Builder
	attributes := slices.Clone(s.Attributes())
	slices.SortFunc(attributes, func(x, y attribute.KeyValue) int { return cmp.Compare(x.Key, y.Key) })
	for _, a := range attributes {
		if strings.HasPrefix(string(a.Key), "distributed_lock.") {
			fmt.Fprintf(&b, "%s· %s = %s\n", margin, a.Key, a.Value.String())
		}
	}
	for _, e := range s.Events() {
		fmt.Fprintf(&b, "%s! %s\n", margin, e.Name)
	}
	return b.String()
}
