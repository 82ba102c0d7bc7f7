package telemetry

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
)

// Telemetry observes locks, rules and the reloads of rule files. Create one per process with [New] and pass
// its [Telemetry.Observer] to core.WithObserver. A Telemetry is safe for concurrent use and owns no goroutine.
type Telemetry struct {
	observer *core.Observer
	callback metric.Registration
	rules    *rules

	acquisitions *acquisitions
	holds        *holds
	declarations *declarations
	reloads      *reloads
	clients      *openClients
}

// New creates a Telemetry. Its error lists every problem of the options and the instruments.
func New(opts ...Option) (*Telemetry, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	meter := cfg.meters.Meter(scopeName, metric.WithInstrumentationVersion(version()))
	inst, err := newInstruments(meter)
	if err != nil {
		return nil, fmt.Errorf("telemetry: New: %w", err)
	}
	log := newLogger(cfg.logger, cfg.rawKeys)
	rules := &rules{limit: cfg.maxRules, crowded: func() {
		log.alarm().Warn("many lock rules: by default an SDK folds the series of an instrument beyond 2,000 into one: " +
			"pass WithCardinalityLimit to the meter provider, or WithMaxRules(250) to telemetry.New")
	}}
	spans := &spans{rules: rules, keys: newKeyAttrs(cfg.rawKeys), blockers: newBlockers()}
	if _, off := cfg.tracers.(noop.TracerProvider); !off {
		spans.tracer = cfg.tracers.Tracer(scopeName, trace.WithInstrumentationVersion(version()))
	}
	t := &Telemetry{
		rules:        rules,
		acquisitions: &acquisitions{inst: inst, spans: spans, log: log, longWait: cfg.longWait},
		holds:        &holds{inst: inst, spans: spans, log: log},
		declarations: newDeclarations(inst, rules, log),
		reloads:      newReloads(inst, log),
		clients:      newOpenClients(inst),
	}
	if t.callback, err = meter.RegisterCallback(t.collect, inst.observables()...); err != nil {
		return nil, fmt.Errorf("telemetry: New: %w", err)
	}
	t.observer = &core.Observer{
		Client:       t.clients.observe,
		AcquireStart: t.acquisitions.observeStart,
		Contention:   t.acquisitions.observeContention,
		AcquireEnd:   t.acquisitions.observeEnd,
		HoldStart:    t.holds.observeStart,
		HoldEnd:      t.holds.observeEnd,
		Renewal:      t.holds.observeRenewal,
		Loss:         t.holds.observeLoss,
		Leak:         t.holds.observeLeak,
		Backend:      log.observeBackend,
		Rules: &aspect.Observer{
			Rule:     t.declarations.observeRule,
			Warning:  t.declarations.observeWarning,
			Decision: t.declarations.observeDecision,
			Failure:  t.declarations.observeFailure,
			Unlocked: t.declarations.observeUnlocked,
			Reload:   t.reloads.observe,
		},
	}
	return t, nil
}

// Observer returns the observer to pass to core.WithObserver, for every lock client of the process. Package core
// notifies it of locks. The adapters of the lock client notify it of rules and of the reloads of their
// rule files.
func (t *Telemetry) Observer() *core.Observer { return t.observer }

// collect reports the gauges at each collection of metrics. It first starts the series of new rules,
// because counts that are added before the program sets its meter provider are dropped.
func (t *Telemetry) collect(ctx context.Context, m metric.Observer) error {
	for _, r := range t.rules.known.all() {
		if !r.hasSeries.Swap(true) {
			t.acquisitions.begin(ctx, r)
			t.holds.begin(ctx, r)
		}
		t.acquisitions.collect(m, r)
		t.holds.collect(m, r)
	}
	t.declarations.begin(ctx)
	t.declarations.collect(m)
	t.reloads.collect(m)
	t.clients.collect(m)
	return nil
}

// Close removes the gauges from the meter provider, which otherwise keeps t alive. Only a program that
// creates several Telemetry values needs it, such as a test. Observations are still counted after Close.
func (t *Telemetry) Close() error {
	if err := t.callback.Unregister(); err != nil {
		return errors.Join(errors.New("telemetry: Close"), err)
	}
	return nil
}

// version returns the version of this module in the running binary.
func version() string {
	const self = "github.com/interlock-go/interlock"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == self {
			return m.Version
		}
	}
	if strings.HasPrefix(info.Main.Path, self) {
		return info.Main.Version
	}
	return ""
}
