package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/telemetry"
)

func outage() core.BackendChange {
	return core.BackendChange{
		ClientID: "client", Cause: fmt.Errorf("%w: %w", core.ErrUnavailable, reply("WRONGPASS invalid username-password pair or user is disabled.")),
	}
}

// newLocks creates a lock client on an embedded Redis that h observes.
func newLocks(t *testing.T, h *harness, opts ...core.Option) (*core.Client, *redistest.Server) {
	t.Helper()
	server := redistest.New(t)
	rdb := server.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	locks, err := core.New(rdb, append(opts, core.WithObserver(h.Telemetry.Observer()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Error(err)
		}
	})
	return locks, server
}

// eventually waits until other goroutines make ok true.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("never")
		}
	}
}

// notifyAll notifies h of every event.
func (h *harness) notifyAll(t *testing.T) {
	t.Helper()
	h.notifyAllOf(t, "order:42")
}

// notifyAllOf notifies h of every event for one key.
func (h *harness) notifyAllOf(t *testing.T, key string) {
	t.Helper()
	ctx := t.Context()
	a := acquisition(key, "pay")
	h.lock(t, a)
	info := core.HoldInfo{Acquisition: a, Token: 7, Lease: time.Minute}
	subject := aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}
	h.Rule(aspect.RuleInfo{Subject: subject, WaitTime: time.Second, LeaseTime: time.Minute})
	h.Reload(ruleset.Reload{File: "locks.yaml", Hash: "aaa", Time: time.Unix(1, 0)})
	refused := h.AcquireStart(ctx, a)
	h.Contention(refused, core.Contention{Acquisition: a, BlockedBy: "other:1"})
	h.AcquireEnd(refused, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Contended: true, BlockedBy: "other:1", HandedOff: true})
	hold := h.HoldStart(ctx, info)
	h.Renewal(hold, core.Renewal{HoldInfo: info, Late: time.Second, Err: core.ErrUnavailable})
	h.Loss(hold, core.Loss{HoldInfo: info, Cause: core.ErrLost})
	h.HoldEnd(hold, core.HoldResult{HoldInfo: info, HandedOff: true, Err: core.ErrUnavailable})
	over := h.HoldStart(ctx, info)
	h.Loss(over, core.Loss{HoldInfo: info, Cause: core.ErrHeldTooLong})
	h.HoldEnd(over, core.HoldResult{HoldInfo: info, HeldTooLong: true, Err: core.ErrHeldTooLong})
	h.Failure(ctx, aspect.Failure{Subject: subject, Cause: failpolicy.Busy, Strategy: failpolicy.Skip})
	h.Unlocked(ctx, aspect.UnlockedRun{Subject: subject, Reason: aspect.UnlockedDisabled})
	h.Decision(ctx, aspect.Decision{Subject: subject, DryRun: true})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	locksObserver = core.Observer
	rulesObserver = aspect.Observer
)

// harness is a Telemetry whose metrics, spans and logs are recorded.
type harness struct {
	*telemetry.Telemetry
	*locksObserver
	*rulesObserver

	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer // the tracer of the application, like the tracer of otelgin
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

// observe adds tel to the observers that h notifies.
func (h *harness) observe(tel *telemetry.Telemetry) {
	h.Telemetry, h.locksObserver = tel, tel.Observer()
	h.rulesObserver = h.Rules.(*aspect.Observer)
}

// request returns a context with the span of a server.
func (h *harness) request(t *testing.T) (context.Context, trace.Span) {
	t.Helper()
	return h.tracer.Start(t.Context(), "POST /orders/:id/pay", trace.WithSpanKind(trace.SpanKindServer))
}

func (h *harness) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	return collectFrom(t, h.reader, telemetry.ScopeName)
}

// collectFrom returns the metrics of a reader. It fails the test if a metric has another scope than want.
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

// value returns the value of a series. For a histogram it returns the count.
func (h *harness) value(t *testing.T, metric string, labels ...string) (float64, bool) {
	t.Helper()
	return seriesOf(h.collect(t)[metric])[labelsOf(labels)].value()
}

// want fails the test unless a series has the value.
func (h *harness) want(t *testing.T, want float64, metric string, labels ...string) {
	t.Helper()
	got, ok := h.value(t, metric, labels...)
	if !ok || got != want {
		t.Errorf("%s%v = %v (exists: %t), want %v; have %v", metric, labels, got, ok, want, seriesOf(h.collect(t)[metric]))
	}
}

type sample struct {
	number float64
	exists bool
}

func (s sample) value() (float64, bool) { return s.number, s.exists }

// labelsOf returns the labels for alternating names and values, such as "rule", "pay", "kind", "reentrant".
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

// span returns the ended span with a name. The test fails unless exactly one exists.
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

// attrs returns the attributes of a span without their common prefix.
func attrs(s sdktrace.ReadOnlySpan) map[string]any {
	m := make(map[string]any)
	for _, kv := range s.Attributes() {
		m[shortName(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// events returns the events of a span with their attributes.
func events(s sdktrace.ReadOnlySpan) map[string]map[string]any {
	m := make(map[string]map[string]any)
	for _, e := range s.Events() {
		m[e.Name] = make(map[string]any)
		for _, kv := range e.Attributes {
			m[e.Name][shortName(kv.Key)] = kv.Value.AsInterface()
		}
	}
	return m
}

func shortName(k attribute.Key) string {
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

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }

func (reply) RedisError() {}

func load(t *testing.T, text string) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type order struct{ ID string }

// wrap wraps a function that does nothing in a rule named "pay".
func wrap(t *testing.T, h *harness, locks *core.Client, rule ruleset.Rule) func(context.Context, order) error {
	t.Helper()
	a, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	rule.Name = "pay"
	if rule.Key == "" {
		rule.Key = "order:#{in.ID}"
	}
	f, err := aspect.Wrap(a, rule, func(context.Context, order) (int, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, o order) error {
		_, err := f(ctx, o)
		return err
	}
}

// lock notifies h of one acquisition and its hold.
func (h *harness) lock(t testing.TB, a core.Acquisition) {
	ctx := t.Context()
	h.AcquireEnd(h.AcquireStart(ctx, a), acquiredResult(a))
	info := core.HoldInfo{Acquisition: a, Acquired: a.Start, Field: "client:1"}
	h.HoldEnd(h.HoldStart(ctx, info), core.HoldResult{HoldInfo: info, Held: time.Millisecond})
}

func acquisition(key, label string) core.Acquisition {
	return core.Acquisition{Key: key, Keys: 1, Kind: core.KindReentrant, Label: label, Start: time.Now()}
}

func acquiredResult(a core.Acquisition) core.AcquireResult {
	return core.AcquireResult{
		Acquisition: a, Outcome: core.OutcomeAcquired, Attempts: 1, Field: "client:1",
		Waited: time.Millisecond, RoundTrip: time.Millisecond,
	}
}

func (h *harness) countSeries(t *testing.T) int {
	t.Helper()
	n := 0
	for _, m := range h.collect(t) {
		n += len(seriesOf(m))
	}
	return n
}

// labelValues returns the labels of all series of a metric.
func labelValues(m metricdata.Metrics) []attribute.KeyValue {
	var all []attribute.KeyValue
	add := func(s attribute.Set) { all = append(all, s.ToSlice()...) }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	}
	return all
}

// redisError is an error reply of Redis with the methods of go-redis.
type redisError struct{}

func (redisError) Error() string { return "OOM command not allowed" }

func (redisError) RedisError() {}
