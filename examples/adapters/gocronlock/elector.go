package gocronlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock/core"
)

// ErrNotLeader is the error of [Elector.IsLeader] in instances that are not the leader.
var ErrNotLeader = errors.New("gocronlock: another instance is the leader")

// Elector implements [gocron.Elector]: the instance that holds a lock is the leader. If the leader dies, another instance leads
// when the lease has expired, 30 s unless core.WithWatchdog sets it. No instance runs a job until then.
type Elector struct {
	lock core.Lock
	last atomic.Pointer[term] // nil before the first term
}

// term is a hold of the leader.
type term struct {
	ctx  context.Context //nolint:containedctx // ends with the hold
	hold *core.Hold
}

// NewElector returns an Elector for a lock, such as locks.FencedLock("leader"). All instances use the same lock.
func NewElector(lock core.Lock) *Elector { return &Elector{lock: lock} }

// Run waits for the lock and leads until ctx ends. Then it releases the lock, so that another instance leads at once. After a loss
// it waits for the lock again. It returns nil when ctx has ended, and an error if the lock client is closed.
func (e *Elector) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		held, hold, err := e.lock.Acquire(ctx)
		switch {
		case err == nil:
			e.last.Store(&term{held, hold})
			<-held.Done()
			_ = hold.Release(ctx) //nolint:errcheck // core reports it to observers; after a loss there is nothing to release
		case errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrInvalid):
			return err
		default: // Redis does not answer, or ctx has ended
			pause(ctx, time.Second)
		}
	}
	return nil
}

// IsLeader implements [gocron.Elector].
func (e *Elector) IsLeader(context.Context) error {
	if t := e.last.Load(); t == nil || t.ctx.Err() != nil { // Err also notices a process that was suspended
		return ErrNotLeader
	}
	return nil
}

// Hold returns the hold of the leader, for its fencing token. It returns nil if this instance has never led.
func (e *Elector) Hold() *core.Hold {
	if t := e.last.Load(); t != nil {
		return t.hold
	}
	return nil
}

// NewJob adds a job to a scheduler that has this Elector. The context of the job ends when this instance is not the leader any
// more, and when the scheduler shuts down.
func (e *Elector) NewJob(s gocron.Scheduler, when gocron.JobDefinition, name string, job func(context.Context) error, opts ...gocron.JobOption) (gocron.Job, error) {
	task := gocron.NewTask(func(ctx context.Context) error {
		t := e.last.Load()
		if t == nil {
			return ErrNotLeader
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
		return job(ctx)
	})
	return s.NewJob(when, task, append([]gocron.JobOption{gocron.WithName(name)}, opts...)...)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
