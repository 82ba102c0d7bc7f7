package telemetry_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/telemetry"
)

func TestNew_BadOptions(t *testing.T) {
	t.Parallel()
	_, err := telemetry.New(
		nil,
		telemetry.WithTracerProvider(nil),
		telemetry.WithMeterProvider(nil),
		telemetry.WithLogger(nil),
		telemetry.WithLongWait(-time.Second),
		telemetry.WithLongWait(5),
		telemetry.WithMaxRules(0),
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option 1 is nil", "WithTracerProvider(nil)", "WithMeterProvider(nil)", "WithLogger(nil)", "WithLongWait(-1s)", "WithLongWait(5ns)", "WithMaxRules(0)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestNew_BadInstruments(t *testing.T) {
	t.Parallel()
	_, err := telemetry.New(telemetry.WithMeterProvider(brokenMeters{}))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"distributed_lock.lost", "distributed_lock.renewals", "distributed_lock.handoffs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestNew_Defaults(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{}
	h.observe(tel)
	h.lock(t, acquisition("order:42", "pay"))
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
}

func TestNew_OptionGivenTwice(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	h := newHarness(t, telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))), telemetry.WithLogger(slog.Default()))
	h.lock(t, acquisition("order:42", "pay"))
	if n := h.countSeries(t); n != 0 {
		t.Errorf("the first provider has %d series", n)
	}
	h.reader = reader
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "acquired")
}

func TestTelemetry_Close(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.lock(t, acquisition("order:42", "pay"))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, exists := h.value(t, "distributed_lock.held", "rule", "pay", "kind", "reentrant"); exists {
		t.Error("distributed_lock.held is still reported")
	}
	h.lock(t, acquisition("order:42", "pay"))
	h.want(t, 2, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "acquired")
}

func noTraces() telemetry.Option { return telemetry.WithTracerProvider(tracenoop.NewTracerProvider()) }

// brokenMeters refuses some instruments.
type brokenMeters struct{ metricnoop.MeterProvider }

func (brokenMeters) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ metricnoop.Meter }

func (brokenMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no " + name)
}
