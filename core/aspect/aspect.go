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
// process is enough. It owns no goroutine and needs no Close.
type Aspect struct {
	locks     *core.Client
	cfg       config
	suspended atomic.Bool

	checking sync.Mutex
	checked  bool // reloads are judged as Check does

	mu     sync.Mutex
	placed []ruleset.Endpoint // of Wrap
}

// New makes an Aspect over a lock client, which stays the caller's to close. The
// error has every problem of the options.
func New(locks *core.Client, opts ...Option) (*Aspect, error) {
	var cfg config
	var errs []error
	if locks == nil {
		errs = append(errs, errors.New("aspect: New: the lock client is nil: make one with core.New"))
	}
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("aspect: New: nil Option"))
			continue
		}
		errs = append(errs, opt(&cfg))
	}
	errs = append(errs, cfg.checkSet())
	if _, err := ruleset.Resolve(nil, cfg.rules...); err != nil {
		errs = append(errs, fmt.Errorf("aspect: New: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Aspect{locks: locks, cfg: cfg}, nil
}

// Locks is the lock client.
func (a *Aspect) Locks() *core.Client { return a.locks }

// Warn tells the observers of warnings: for adapters.
func (a *Aspect) Warn(problems ...*ruleset.Problem) {
	for _, p := range problems {
		a.cfg.observers.observeWarning(p)
	}
}

// Suspend is the kill switch: from now on every handler of every rule runs without
// its lock, counted as [UnlockedDisabled]. What is held stays held until its
// handler returns.
func (a *Aspect) Suspend() { a.suspended.Store(true) }

// Resume ends a suspension.
func (a *Aspect) Resume() { a.suspended.Store(false) }

// Suspended reports whether the kill switch is on.
func (a *Aspect) Suspended() bool { return a.suspended.Load() }
