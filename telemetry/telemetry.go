package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Telemetry observes locks, rules and the reloads of rule files. Make it with [New],
// one per process, and give its [Telemetry.Observer] to core.WithObserver. It is safe for concurrent use and owns no goroutine.
type Telemetry struct {
	observer *core.Observer

	tracer   trace.Tracer // nil for no spans
	inst     *instruments
	log      *logger
	callback metric.Registration
	longWait time.Duration
	maxRules int
	rawKeys  bool
	silent   bool // no logger was given

	rules lookup[ruleID, *rule]
	attrs attrPool

	crowded sync.Once // the warning of more than sdkRules

	hashes   *hashes
	blockers *blockers

	mu      sync.Mutex
	sites   map[site]declared
	clients map[*core.Client]metric.MeasurementOption // the labels of each that is open
	reloads map[string]ruleset.Reload                 // the one in force, by file
	refused map[string]bool                           // files whose last content was refused
}

// New makes a Telemetry. The error has every problem of the options and of the
// instruments.
func New(opts ...Option) (*Telemetry, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	meter := cfg.meters.Meter(scopeName, metric.WithInstrumentationVersion(version()))
	t := &Telemetry{
		longWait: cfg.longWait,
		maxRules: cfg.maxRules,
		rawKeys:  cfg.rawKeys,
		silent:   cfg.logger == nil,
		sites:    make(map[site]declared),
		clients:  make(map[*core.Client]metric.MeasurementOption),
		reloads:  make(map[string]ruleset.Reload),
		refused:  make(map[string]bool),
		hashes:   newHashes(),
		blockers: newBlockers(),
		log:      newLogger(cmp.Or(cfg.logger, slog.New(slog.DiscardHandler))),
	}
	if _, off := cfg.tracers.(noop.TracerProvider); !off {
		t.tracer = cfg.tracers.Tracer(scopeName, trace.WithInstrumentationVersion(version()))
	}
	if t.inst, err = newInstruments(meter); err != nil {
		return nil, fmt.Errorf("telemetry: New: %w", err)
	}
	if t.callback, err = meter.RegisterCallback(t.collect, t.inst.observables()...); err != nil {
		return nil, fmt.Errorf("telemetry: New: %w", err)
	}
	t.observer = &core.Observer{
		Client:       t.observeClient,
		AcquireStart: t.observeAcquireStart,
		Contention:   t.observeContention,
		AcquireEnd:   t.observeAcquireEnd,
		HoldStart:    t.observeHoldStart,
		HoldEnd:      t.observeHoldEnd,
		Renewal:      t.observeRenewal,
		Loss:         t.observeLoss,
		Leak:         t.observeLeak,
		Backend:      t.observeBackend,
		Rules: &aspect.Observer{
			Rule:     t.observeRule,
			Warning:  t.observeWarning,
			Decision: t.observeDecision,
			Failure:  t.observeFailure,
			Unlocked: t.observeUnlocked,
			Reload:   t.observeReload,
		},
	}
	return t, nil
}

// Observer returns the observer to pass to core.WithObserver, for every lock client of the process: core notifies it of locks, and the
// adapters of the lock client notify it of rules and of the reloads of their rule files.
func (t *Telemetry) Observer() *core.Observer { return t.observer }

// Close takes the gauges off the meter provider, which otherwise keeps t alive as
// long as itself. It is for programs that make several, such as tests; a process
// with one needs none. Observations go on being counted.
func (t *Telemetry) Close() error {
	if err := t.callback.Unregister(); err != nil {
		return errors.Join(errors.New("telemetry: Close"), err)
	}
	return nil
}

// version is that of the module in this binary.
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
