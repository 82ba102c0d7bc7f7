package telemetry_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
)

// BenchmarkLock is what one uncontended acquisition and its hold spend in telemetry:
// the calls that core makes, without core and Redis.
func BenchmarkLock(b *testing.B) {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	for _, bench := range []struct {
		name string
		opts []telemetry.Option
	}{
		{"noop", []telemetry.Option{
			telemetry.WithMeterProvider(metricnoop.NewMeterProvider()), telemetry.WithTracerProvider(tracenoop.NewTracerProvider()),
		}},
		{"metrics", []telemetry.Option{
			telemetry.WithMeterProvider(meters), telemetry.WithTracerProvider(tracenoop.NewTracerProvider()),
		}},
		{"metrics+neverSampled", []telemetry.Option{
			telemetry.WithMeterProvider(meters), telemetry.WithTracerProvider(tracers(sdktrace.NeverSample())),
		}},
		{"metrics+alwaysSampled", []telemetry.Option{
			telemetry.WithMeterProvider(meters), telemetry.WithTracerProvider(tracers(sdktrace.AlwaysSample())),
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			tel, err := telemetry.New(bench.opts...)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkLock(b, tel)
		})
	}
}

// BenchmarkSDK is the floor of alwaysSampled: spans and records like those of
// BenchmarkLock, given to the SDK with nothing around them.
func BenchmarkSDK(b *testing.B) {
	tracer := tracers(sdktrace.AlwaysSample()).Tracer("bench")
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bench")
	seconds, err := meter.Float64Histogram("bench")
	if err != nil {
		b.Fatal(err)
	}
	rule := []attribute.KeyValue{attribute.String("rule", "POST /orders/:id/pay"), attribute.String("kind", "reentrant")}
	start := []trace.SpanStartOption{trace.WithAttributes(rule...)}
	record := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(rule, attribute.String("outcome", "acquired"))...))}
	end := []attribute.KeyValue{
		attribute.String("key_hash", "9c56cc51b374c3ba"), attribute.String("outcome", "acquired"), attribute.Bool("reentry", false),
		attribute.String("holder", "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7"), attribute.Int("attempts", 1),
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		acquireCtx, s := tracer.Start(ctx, "lock.acquire", start...)
		seconds.Record(acquireCtx, 90e-6, record...)
		seconds.Record(acquireCtx, 80e-6, record...)
		s.SetAttributes(end...)
		s.End()
		holdCtx, s := tracer.Start(ctx, "lock.hold", start...)
		seconds.Record(holdCtx, 3e-3, record...)
		s.SetAttributes(end[:4]...)
		s.End()
	}
}

func tracers(s sdktrace.Sampler) trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithSpanProcessor(discard{}))
}

// discard stands in for a batching exporter: that one copies and queues only.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

func benchmarkLock(b *testing.B, tel *telemetry.Telemetry) {
	ctx, l := b.Context(), newCalls()
	b.ReportAllocs()
	for b.Loop() {
		l.make(ctx, tel.Observer())
	}
}

// calls are what core tells of one uncontended acquisition and its hold.
type calls struct {
	acquisition core.Acquisition
	acquired    core.AcquireResult
	hold        core.HoldInfo
}

func newCalls() *calls {
	now := time.Now()
	a := core.Acquisition{Key: "shop:order:42", Keys: 1, Kind: core.KindReentrant, Label: "POST /orders/:id/pay", Start: now}
	acquired := core.AcquireResult{
		Acquisition: a, Outcome: core.OutcomeAcquired, Waited: 90 * time.Microsecond, Attempts: 1,
		RoundTrip: 80 * time.Microsecond, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7",
	}
	hold := core.HoldInfo{Acquisition: a, Field: acquired.Field, Lease: 30 * time.Second, Watchdog: true, Acquired: now}
	return &calls{acquisition: a, acquired: acquired, hold: hold}
}

func (l *calls) make(ctx context.Context, o *core.Observer) {
	acquireCtx := o.AcquireStart(ctx, l.acquisition)
	o.AcquireEnd(acquireCtx, l.acquired)
	holdCtx := o.HoldStart(ctx, l.hold)
	o.HoldEnd(holdCtx, core.HoldResult{HoldInfo: l.hold, Held: 3 * time.Millisecond, Remaining: 29 * time.Second})
}
