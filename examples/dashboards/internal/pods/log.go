package pods

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// traceHandler adds the trace of the request, if any, to each record. It gets the trace from the context of
// the record, which telemetry passes. Handlers that support OpenTelemetry, such as otelslog, do the same.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id.String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
