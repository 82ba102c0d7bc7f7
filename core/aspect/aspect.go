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
	observers observers
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
	a := &Aspect{locks: locks}
	var errs []error
	if locks == nil {
		errs = append(errs, errors.New("aspect: New: the lock client is nil: make one with core.New"))
	} else {
		for _, v := range locks.ForAdapters().Observers() {
			errs = append(errs, a.observers.add(v))
		}
	}
	errs = append(errs, Apply("aspect: New: ", &a.cfg, opts)...)
	for _, p := range a.cfg.sources.Check() {
		errs = append(errs, fmt.Errorf("aspect: %w", p))
	}
	rules, err := a.cfg.sources.Provider()
	if err != nil {
		errs = append(errs, fmt.Errorf("aspect: New: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	a.registry = NewRegistry(a, a.functions())
	if a.wrapped, err = a.registry.Table(rules); err != nil {
		return nil, fmt.Errorf("aspect: New: %w", err)
	}
	return a, nil
}

// Warn tells the observers of warnings: for adapters.
func (a *Aspect) Warn(problems ...*ruleset.Problem) {
	for _, p := range problems {
		a.observers.observeWarning(p)
	}
}

// Conclude tells the observers of the warnings of a report, and returns its errors: what
// the Check of an adapter ends with.
func (a *Aspect) Conclude(r *Report) error {
	a.Warn(r.Warnings()...)
	return r.err()
}

// Suspend is the kill switch: from now on every handler of every rule runs without
// its lock, counted as [UnlockedDisabled]. What is held stays held until its
// handler returns.
func (a *Aspect) Suspend() { a.suspended.Store(true) }

// Resume ends a suspension.
func (a *Aspect) Resume() { a.suspended.Store(false) }

// Suspended reports whether the kill switch is on.
func (a *Aspect) Suspended() bool { return a.suspended.Load() }
