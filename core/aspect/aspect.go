package aspect

import (
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
)

// Aspect compiles rules against one lock client. Make it with [New]; one per
// process is enough. It owns no goroutine and needs no Close.
type Aspect struct {
	locks     *core.Client
	cfg       config
	suspended atomic.Bool
}

// New makes an Aspect over a lock client, which stays the caller's to close. The
// error has every problem of the options.
func New(locks *core.Client, opts ...Option) (*Aspect, error) {
	panic("unbuilt")
}

// Locks is the lock client.
func (a *Aspect) Locks() *core.Client { return a.locks }

// Suspend is the kill switch: from now on every handler of every rule runs without
// its lock, counted as [UnlockedDisabled]. What is held stays held until its
// handler returns.
func (a *Aspect) Suspend() { a.suspended.Store(true) }

// Resume ends a suspension.
func (a *Aspect) Resume() { a.suspended.Store(false) }

// Suspended reports whether the kill switch is on.
func (a *Aspect) Suspended() bool { return a.suspended.Load() }
