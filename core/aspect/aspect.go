package aspect

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Aspect compiles rules against one lock client. Make it with [New]; one per
// process is enough. It owns no goroutine and needs no Close: over a [ruleset.Live] it
// follows every reload until that is closed.
type Aspect struct {
	locks     *core.Client
	cfg       config
	suspended atomic.Bool

	mu       sync.Mutex
	prefixes []ruleset.Endpoint // of the adapters that have one

	registry *Registry[*function, struct{}] // of Wrap
	wrapped  *Table[*function, struct{}]
}

// New makes an Aspect over a lock client, which stays the caller's to close. The
// error has every problem of the options.
func New(locks *core.Client, opts ...Option) (*Aspect, error) {
	var cfg config
	var errs []error
	if locks == nil {
		errs = append(errs, errors.New("aspect: New: the lock client is nil: make one with core.New"))
	} else {
		cfg.observers.addThose(locks.Observers())
	}
	errs = append(errs, Apply("aspect: New: ", &cfg, opts)...)
	for _, p := range cfg.sources.Check() {
		errs = append(errs, fmt.Errorf("aspect: %w", p))
	}
	rules, err := cfg.sources.Provider()
	if err != nil {
		errs = append(errs, fmt.Errorf("aspect: New: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	a := &Aspect{locks: locks, cfg: cfg}
	a.warnOfHalfObservers()
	a.registry = NewRegistry(a, a.functions())
	if a.wrapped, err = a.registry.Table(rules); err != nil {
		return nil, fmt.Errorf("aspect: New: %w", err)
	}
	return a, nil
}

// warnOfHalfObservers warns of observers that observe locks, too, and that the lock client was not
// given: a loss would be counted nowhere.
func (a *Aspect) warnOfHalfObservers() {
	known := a.locks.Observers()
	for _, v := range a.cfg.observers.given {
		_, observesLocks := v.(core.LossObserver)
		if observesLocks && !contains(known, v) {
			a.Warn(&ruleset.Problem{Message: fmt.Sprintf("WithObserver: %T also observes locks, of which it hears nothing: give it to core.WithObserver instead", v)})
		}
	}
}

// Locks is the lock client.
func (a *Aspect) Locks() *core.Client { return a.locks }

// Warn tells the observers of warnings: for adapters.
func (a *Aspect) Warn(problems ...*ruleset.Problem) {
	for _, p := range problems {
		a.cfg.observers.observeWarning(p)
	}
}

// Conclude tells the observers of the warnings of a report, and returns its errors: what
// the Check of an adapter ends with.
func (a *Aspect) Conclude(r *Report) error {
	a.Warn(r.Warnings()...)
	return r.Err()
}

// Suspend is the kill switch: from now on every handler of every rule runs without
// its lock, counted as [UnlockedDisabled]. What is held stays held until its
// handler returns.
func (a *Aspect) Suspend() { a.suspended.Store(true) }

// Resume ends a suspension.
func (a *Aspect) Resume() { a.suspended.Store(false) }

// Suspended reports whether the kill switch is on.
func (a *Aspect) Suspended() bool { return a.suspended.Load() }
