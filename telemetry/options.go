package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Defaults of [New].
const (
	// defaultMaxRules is the number of rules that have separate series.
	defaultMaxRules = 1_000

	// defaultLongWait is the shortest wait that is logged.
	defaultLongWait = 5 * time.Second
)

// Option configures a [Telemetry]. If an option is given twice, the last one counts.
type Option func(*config) error

type config struct {
	tracers  trace.TracerProvider
	meters   metric.MeterProvider
	logger   *slog.Logger // nil: none was given
	longWait time.Duration
	maxRules int
	rawKeys  bool
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		tracers:  otel.GetTracerProvider(),
		meters:   otel.GetMeterProvider(),
		longWait: defaultLongWait,
		maxRules: defaultMaxRules,
	}
	var errs []error
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, fmt.Errorf("telemetry: New: option %d is nil", i+1))
			continue
		}
		errs = append(errs, opt(&cfg))
	}
	return cfg, errors.Join(errs...)
}

// WithTracerProvider sets the provider of the tracer. Default: the global provider, even if the program sets it
// later. A provider of OpenTelemetry's package trace/noop switches spans off.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errNil("WithTracerProvider", "a provider, such as trace/noop's for no spans, or leave the option out for the global one")
		}
		c.tracers = p
		return nil
	}
}

// WithMeterProvider sets the provider of the meter. Default: the global provider, even if the program sets it
// later. A provider of OpenTelemetry's package metric/noop switches metrics off.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errNil("WithMeterProvider", "a provider, such as metric/noop's for no metrics, or leave the option out for the global one")
		}
		c.meters = p
		return nil
	}
}

// WithLogger sets the logger for losses, leaks, release failures, backend failures and long waits. Their
// records are rate-limited. Records carry the context of the request, so a handler that supports OpenTelemetry
// adds the trace. Default: these records are not written. Records about problems that concern all requests go
// to [slog.Default] instead: that Redis is unavailable or available again, that a rule file was refused or
// makes endpoints run unlocked, and warnings about rules.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errNil("WithLogger", "a logger, such as slog.Default(), or leave the option out for no logs")
		}
		c.logger = l
		return nil
	}
}

// WithLongWait sets the shortest wait that is logged, whether or not the lock was acquired: at least 1ms, or 0
// to log no waits. Default: 5s.
func WithLongWait(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond && d != 0 { // for a few nanoseconds, the caller probably forgot the unit
			return fmt.Errorf("telemetry: WithLongWait(%s): want at least 1ms, such as 5*time.Second, or 0 for no such records", d)
		}
		c.longWait = d
		return nil
	}
}

// WithMaxRules sets the number of rules that have separate series: at least 1. Further rules are counted as
// rule "other". Default: 1,000. With more than 250 rules, pass sdkmetric.WithCardinalityLimit(8 × rules) to the
// meter provider, because by default the SDK folds all series of an instrument beyond 2,000 into one without a
// rule.
func WithMaxRules(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("telemetry: WithMaxRules(%d): want at least 1, such as %d", n, defaultMaxRules)
		}
		c.maxRules = n
		return nil
	}
}

// WithRawKeys puts keys on spans and into logs instead of their hashes. Keys often contain personal data. Keys
// are never labels of metrics.
func WithRawKeys() Option {
	return func(c *config) error {
		c.rawKeys = true
		return nil
	}
}

func errNil(option, want string) error {
	return fmt.Errorf("telemetry: %s(nil): want %s", option, want)
}
