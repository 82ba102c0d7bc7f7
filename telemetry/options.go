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
	// defaultMaxRules is how many different rules have series of their own.
	defaultMaxRules = 1_000

	// defaultLongWait is the wait from which on a record is logged.
	defaultLongWait = 5 * time.Second
)

// Option configures a [Telemetry]. Of an option that is given twice the last one
// counts.
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

// WithTracerProvider sets where spans go. Default: the global one, also if it is
// set later. A provider of OpenTelemetry's trace/noop package switches spans off.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errNil("WithTracerProvider", "a provider, such as trace/noop's for no spans, or leave the option out for the global one")
		}
		c.tracers = p
		return nil
	}
}

// WithMeterProvider sets where metrics go. Default: the global one, also if it is
// set later. A provider of OpenTelemetry's metric/noop package switches metrics off.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errNil("WithMeterProvider", "a provider, such as metric/noop's for no metrics, or leave the option out for the global one")
		}
		c.meters = p
		return nil
	}
}

// WithLogger sets where losses, leaks, release failures, backend failures and long
// waits are logged, rate-limited. Default: nowhere, but for what makes all requests fail
// or run unlocked, which goes to [slog.Default]: that Redis became unavailable and is
// available again, that a rule file was refused or takes locks away, and warnings about rules. Records are given the context of
// the request, so a handler that knows OpenTelemetry adds the trace.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errNil("WithLogger", "a logger, such as slog.Default(), or leave the option out for no logs")
		}
		c.logger = l
		return nil
	}
}

// WithLongWait sets the wait from which on a record is logged, whether the lock was
// acquired or not: 0, for no such records, or at least 1ms. Default: 5s.
func WithLongWait(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond && d != 0 { // a few nanoseconds are a number without its unit
			return fmt.Errorf("telemetry: WithLongWait(%s): want at least 1ms, such as 5*time.Second, or 0 for no such records", d)
		}
		c.longWait = d
		return nil
	}
}

// WithMaxRules sets how many different rules have series of their own; the others
// are counted as rule "other". At least 1. Default: 1,000. With more than 250 rules
// give the meter provider sdkmetric.WithCardinalityLimit(8 × rules): by default the SDK folds the series
// of an instrument beyond 2,000 into one without a rule.
func WithMaxRules(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("telemetry: WithMaxRules(%d): want at least 1, such as %d", n, defaultMaxRules)
		}
		c.maxRules = n
		return nil
	}
}

// WithRawKeys puts keys on spans and into logs as they are, instead of their hash.
// Keys often hold what a person may be known by. They are never labels of metrics.
func WithRawKeys() Option {
	return func(c *config) error {
		c.rawKeys = true
		return nil
	}
}

func errNil(option, want string) error {
	return fmt.Errorf("telemetry: %s(nil): want %s", option, want)
}
