package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	locksObserver = core.Observer
	rulesObserver = aspect.Observer
)

// harness is a Telemetry with everything that it reports recorded.
type harness struct {
	*telemetry.Telemetry
	*locksObserver
	*rulesObserver

	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer // of the application, as otelgin's would be
	logs   *logBuffer
}

func newHarness(t *testing.T, opts ...telemetry.Option) *harness {
	t.Helper()
	h := &harness{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(), logs: &logBuffer{}}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(h.spans))
	h.tracer = tracers.Tracer("app")
	base := []telemetry.Option{
		telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(h.reader))),
		telemetry.WithTracerProvider(tracers),
		telemetry.WithLogger(slog.New(slog.NewJSONHandler(h.logs, nil))),
	}
	tel, err := telemetry.New(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	h.observe(tel)
	return h
}

// observe makes h call the functions of tel.
func (h *harness) observe(tel *telemetry.Telemetry) {
	h.Telemetry, h.locksObserver = tel, tel.Observer()
	h.rulesObserver = h.Rules.(*aspect.Observer)
}

// request is a context with the span of a server.
func (h *harness) request(t *testing.T) (context.Context, trace.Span) {
	t.Helper()
	return h.tracer.Start(t.Context(), "POST /orders/:id/pay", trace.WithSpanKind(trace.SpanKindServer))
}

func (h *harness) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	return collectFrom(t, h.reader, telemetry.ScopeName)
}

// collectFrom gives the metrics of a reader, all of which belong to one scope.
func collectFrom(t *testing.T, reader *sdkmetric.ManualReader, want string) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]metricdata.Metrics)
	for _, scope := range rm.ScopeMetrics {
		if scope.Scope.Name != want {
			t.Errorf("scope %q", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// value is that of one series: the sum of a counter, the count of a histogram.
func (h *harness) value(t *testing.T, metric string, labels ...string) (float64, bool) {
	t.Helper()
	return seriesOf(h.collect(t)[metric])[labelsOf(labels)].value()
}

// want fails unless a series has a value.
func (h *harness) want(t *testing.T, want float64, metric string, labels ...string) {
	t.Helper()
	got, ok := h.value(t, metric, labels...)
	if !ok || got != want {
		t.Errorf("%s%v = %v (exists: %t), want %v; there is %v", metric, labels, got, ok, want, seriesOf(h.collect(t)[metric]))
	}
}

type sample struct {
	number float64
	exists bool
}

func (s sample) value() (float64, bool) { return s.number, s.exists }

// labelsOf makes a set of "rule", "pay", "kind", "reentrant", ….
func labelsOf(pairs []string) attribute.Distinct {
	kvs := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		kvs = append(kvs, attribute.String("distributed_lock."+pairs[i], pairs[i+1]))
	}
	set := attribute.NewSet(kvs...)
	return set.Equivalent()
}

func seriesOf(m metricdata.Metrics) map[attribute.Distinct]sample {
	all := make(map[attribute.Distinct]sample)
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Equivalent()] = sample{float64(p.Value), true}
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Equivalent()] = sample{float64(p.Value), true}
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Equivalent()] = sample{p.Value, true}
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all[p.Attributes.Equivalent()] = sample{float64(p.Count), true}
		}
	}
	return all
}

// span is the only ended span of a name.
func (h *harness) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range h.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d ended spans %q, want 1", len(found), name)
	}
	return found[0]
}

// attrs are the attributes of a span, without their common prefix.
func attrs(s sdktrace.ReadOnlySpan) map[string]any {
	m := make(map[string]any)
	for _, kv := range s.Attributes() {
		m[short(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// events are the events of a span with their attributes.
func events(s sdktrace.ReadOnlySpan) map[string]map[string]any {
	m := make(map[string]map[string]any)
	for _, e := range s.Events() {
		m[e.Name] = make(map[string]any)
		for _, kv := range e.Attributes {
			m[e.Name][short(kv.Key)] = kv.Value.AsInterface()
		}
	}
	return m
}

func short(k attribute.Key) string {
	const prefix = "distributed_lock."
	if s := string(k); len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return string(k)
}

// logBuffer collects JSON records.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) records(t *testing.T) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(b.buf.Bytes())); dec.More(); {
		var r map[string]any
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func wantAttrs(t *testing.T, s sdktrace.ReadOnlySpan, want map[string]any) {
	t.Helper()
	if got := attrs(s); !reflect.DeepEqual(got, want) {
		t.Errorf("attributes of %s:\n got %v\nwant %v", s.Name(), got, want)
	}
}
