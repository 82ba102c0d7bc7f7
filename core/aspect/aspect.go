package aspect

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Aspect compiles rules for one lock client. Create it with [New]; one per process is enough. It owns no goroutine and
// needs no Close. If its set is a [ruleset.Live], the Aspect follows every reload until the set is closed.
type Aspect struct {
	env       *environment
	cfg       config
	functions functions // the functions given to Wrap
}

// New returns an Aspect for a lock client. The caller closes the client. The error contains every problem of the
// options.
func New(locks *core.Client, opts ...Option) (*Aspect, error) {
	a := &Aspect{env: &environment{locks: locks}}
	var errs []error
	if locks == nil {
		errs = append(errs, errors.New("aspect: New: the lock client is nil: make one with core.New"))
	} else {
		for _, v := range locks.ForAdapters().Observers() {
			errs = append(errs, a.env.observers.add(v))
		}
	}
	errs = append(errs, Apply("aspect: New: ", &a.cfg, opts)...)
	for _, p := range a.cfg.sources.Check() {
		errs = append(errs, fmt.Errorf("aspect: %w", p))
	}
	a.env.resolving = a.cfg.sources.resolving
	rules, err := a.cfg.sources.Provider()
	if err != nil {
		errs = append(errs, fmt.Errorf("aspect: New: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if a.functions, err = newFunctions(a.env, &a.cfg.sources, rules); err != nil {
		return nil, fmt.Errorf("aspect: New: %w", err)
	}
	return a, nil
}

// NewRegistry returns a registry without rules.
func NewRegistry[K comparable, X any](a *Aspect, adapter Adapter[K, X]) *Registry[K, X] {
	return newRegistry(a.env, &adapter)
}

// Prepare compiles rules without putting them into force. Observers are notified only when the rules come into force.
func (a *Aspect) Prepare(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	return a.env.prepare(site, rules)
}

// Check reports the problems of the wrapped functions, and of the rules for functions in the set of [WithSet]. Above all it
// reports rules whose function was never wrapped, with the severity that the set gives. Call it after all functions
// are wrapped. From then on the Aspect checks every reload in the same way.
func (a *Aspect) Check() error { return a.Conclude(a.functions.registry.Check()) }

// Conclude notifies the observers of the warnings of a report and returns its errors. An adapter's Check calls it
// last.
func (a *Aspect) Conclude(r *Report) error {
	a.Warn(r.Warnings()...)
	return r.err()
}

// Warn notifies the observers of warnings. It is for adapters.
func (a *Aspect) Warn(problems ...*ruleset.Problem) { a.env.warn(problems...) }

// WarnOnce warns observers of a problem that affects every call of the entry. Only the first WarnOnce of an entry
// warns.
func (e *Entry[X]) WarnOnce(a *Aspect, reason error) {
	e.once.Do(func() {
		var report Report
		report.Add(e.Endpoint, reason)
		a.Warn(report.Errors()...)
	})
}

// Suspend turns the kill switch on: until [Aspect.Resume], every handler of every rule runs without its lock and is
// counted as [UnlockedDisabled]. A lock that is held stays held until its handler returns.
func (a *Aspect) Suspend() { a.env.suspended.Store(true) }

// Resume turns the kill switch off.
func (a *Aspect) Resume() { a.env.suspended.Store(false) }

// Suspended reports whether the kill switch is on.
func (a *Aspect) Suspended() bool { return a.env.suspended.Load() }
