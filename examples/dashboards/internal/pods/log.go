package pods

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// traced adds the trace of the request to each record, if there is one. Records of telemetry have the context of the
// request. Handlers of OpenTelemetry such as otelslog add the trace by themselves.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id.String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
