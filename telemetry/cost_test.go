package telemetry_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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

// BenchmarkCost measures the cost of telemetry. Within one run the variants take turns of a few calls, and the median turn of
// each variant counts, so other work on the machine affects all variants alike.
//
//   - redis acquires and releases a free lock at a redis-server on loopback. Its results are ratios to the variant without
//     telemetry. Limits: 1.05 with metrics, 1.10 with metrics and unsampled traces.
//   - calls makes the calls of core for one lock without core and Redis. It also measures an SDK alone with two spans of the same
//     attributes, and with these spans and the same values. Results are nanoseconds. Limit: the sampled variants take at most
//     700 ns more than the SDK alone, with traces and with traces and metrics.
func BenchmarkCost(b *testing.B) {
	b.Run("redis", benchmarkCostRedis)
	b.Run("calls", benchmarkCostCalls)
}

func benchmarkCostRedis(b *testing.B) {
	rdb := redisServer(b)
	none := &variant{name: "none", turn: lockTurn(b, rdb)}
	metrics := &variant{name: "metrics", turn: lockTurn(b, rdb, core.WithObserver(newTelemetry(b, tracenoop.NewTracerProvider()).Observer()))}
	unsampled := &variant{name: "unsampled", turn: lockTurn(b, rdb, core.WithObserver(newTelemetry(b, tracers(sdktrace.NeverSample())).Observer()))}
	sampled := &variant{name: "sampled", turn: lockTurn(b, rdb, core.WithObserver(newTelemetry(b, tracers(sdktrace.AlwaysSample())).Observer()))}
	takeTurns(b, none, metrics, unsampled, sampled)
	base := none.median()
	b.ReportMetric(base, "none-ns")
	for _, v := range []*variant{metrics, unsampled, sampled} {
		b.ReportMetric(v.median()/base, v.name+"/none")
	}
}

func benchmarkCostCalls(b *testing.B) {
	off := telemetry.WithMeterProvider(metricnoop.NewMeterProvider())
	metrics := &variant{name: "metrics", turn: callsTurn(b, newTelemetry(b, tracenoop.NewTracerProvider()))}
	unsampled := &variant{name: "unsampled", turn: callsTurn(b, newTelemetry(b, tracers(sdktrace.NeverSample())))}
	sampled := &variant{name: "sampled", turn: callsTurn(b, newTelemetry(b, tracers(sdktrace.AlwaysSample())))}
	traces := &variant{name: "traces", turn: callsTurn(b, newTelemetry(b, tracers(sdktrace.AlwaysSample()), off))}
	spans := &variant{name: "sdk-spans", turn: bareTurn(b, tracers(sdktrace.AlwaysSample()), metricnoop.NewMeterProvider())}
	both := &variant{name: "sdk-both", turn: bareTurn(b, tracers(sdktrace.AlwaysSample()), meters())}
	all := []*variant{metrics, unsampled, sampled, traces, spans, both}
	takeTurns(b, all...)
	for _, v := range all {
		b.ReportMetric(v.median(), v.name+"-ns")
	}
	b.ReportMetric(traces.median()-spans.median(), "traces-over-sdk-ns")
	b.ReportMetric(sampled.median()-both.median(), "sampled-over-sdk-ns")
}

// perTurn is the number of acquisitions in a turn.
const perTurn = 32

// variant is one of the compared setups.
type variant struct {
	name  string
	turn  func() // perTurn acquisitions
	spent []time.Duration
}

// takeTurns runs the turns of each variant that the benchmark requires, after one turn that does not count.
// The order changes with each round.
func takeTurns(b *testing.B, variants ...*variant) {
	b.Helper()
	for _, v := range variants {
		v.turn()
	}
	for round := 0; b.Loop(); round++ {
		for i := range variants {
			v := variants[(round+i)%len(variants)]
			began := time.Now()
			v.turn()
			v.spent = append(v.spent, time.Since(began))
		}
	}
}

// median returns the time of one acquisition in the median turn, in nanoseconds.
func (v *variant) median() float64 {
	slices.Sort(v.spent)
	return float64(v.spent[len(v.spent)/2].Nanoseconds()) / perTurn
}

// newTelemetry creates a Telemetry with a separate metrics SDK, unless opts set another.
func newTelemetry(b *testing.B, traces trace.TracerProvider, opts ...telemetry.Option) *telemetry.Telemetry {
	b.Helper()
	opts = append([]telemetry.Option{telemetry.WithMeterProvider(meters()), telemetry.WithTracerProvider(traces)}, opts...)
	tel, err := telemetry.New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	return tel
}

func meters() metric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// lockTurn acquires and releases a free lock.
func lockTurn(b *testing.B, rdb *redis.Client, opts ...core.Option) func() {
	b.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(context.Background()) })
	ctx, lock := b.Context(), locks.Lock("shop:order:42")
	label := core.Label("POST /orders/:id/pay")
	return func() {
		for range perTurn {
			_, hold, err := lock.Acquire(ctx, core.WaitTime(0), label)
			if err != nil {
				b.Fatal(err)
			}
			if err := hold.Release(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// callsTurn makes the calls of core.
func callsTurn(b *testing.B, tel *telemetry.Telemetry) func() {
	b.Helper()
	ctx, l := b.Context(), newCalls()
	return func() {
		for range perTurn {
			l.make(ctx, tel.Observer())
		}
	}
}

// bareTurn starts the spans of one acquisition and its hold and records the values with the SDK
// alone.
func bareTurn(b *testing.B, traces trace.TracerProvider, values metric.MeterProvider) func() {
	b.Helper()
	tracer, ctx := traces.Tracer("bench"), b.Context()
	seconds, err := values.Meter("bench").Float64Histogram("bench")
	if err != nil {
		b.Fatal(err)
	}
	rule := []attribute.KeyValue{
		attribute.String("distributed_lock.rule", "POST /orders/:id/pay"), attribute.String("distributed_lock.kind", "reentrant"),
	}
	start := []trace.SpanStartOption{trace.WithAttributes(rule...)}
	record := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(rule...))}
	keyHash, holder := "9c56cc51b374c3ba", "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7"
	return func() {
		for range perTurn {
			of, s := tracer.Start(ctx, "lock.acquire", start...)
			seconds.Record(of, 90e-6, record...)
			seconds.Record(ctx, 80e-6, record...) // without an exemplar
			s.SetAttributes(
				attribute.String("distributed_lock.key_hash", keyHash), attribute.String("distributed_lock.outcome", "acquired"),
				attribute.Int("distributed_lock.attempts", 1), attribute.Bool("distributed_lock.reentry", false),
				attribute.String("distributed_lock.holder", holder))
			s.End()
			of, s = tracer.Start(ctx, "lock.hold", start...)
			seconds.Record(of, 3e-3, record...)
			seconds.Record(ctx, 0.9, record...) // also without an exemplar
			s.SetAttributes(
				attribute.String("distributed_lock.key_hash", keyHash), attribute.String("distributed_lock.outcome", "released"),
				attribute.Bool("distributed_lock.reentry", false), attribute.String("distributed_lock.holder", holder))
			s.End()
		}
	}
}

// redisServer starts a redis-server on loopback, which ends with the benchmark, and returns a client.
func redisServer(b *testing.B) *redis.Client {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := listener.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := listener.Close(); err != nil {
		b.Fatal(err)
	}
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", b.TempDir())
	if err := server.Start(); err != nil {
		if os.Getenv("INTERLOCK_REQUIRE_REDIS") == "1" {
			b.Fatal(err)
		}
		b.Skipf("no redis-server (INTERLOCK_REQUIRE_REDIS=1 makes this a failure): %v", err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	// The client retries until the server listens.
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: 200, MinRetryBackoff: 10 * time.Millisecond, MaxRetryBackoff: 50 * time.Millisecond})
	b.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.Ping(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	return rdb
}

func tracers(s sdktrace.Sampler) trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithSpanProcessor(discardProcessor{}))
}

// discardProcessor stands for a batching exporter, which only copies and queues spans.
type discardProcessor struct{}

func (discardProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discardProcessor) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discardProcessor) Shutdown(context.Context) error                  { return nil }
func (discardProcessor) ForceFlush(context.Context) error                { return nil }

// calls contains the notifications of core about an uncontended acquisition and its hold.
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
