package gocronlock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock/core"
)

// ErrNotLeader is the error of [Elector.IsLeader] in instances that are not the leader.
var ErrNotLeader = errors.New("gocronlock: another instance is the leader")

// Elector implements [gocron.Elector]: the leader runs the jobs. Its zero value is not the leader. If the leader dies, another
// instance leads when the lease has expired, 30 s unless core.WithWatchdog sets it. No instance runs a job until then.
type Elector struct {
	term atomic.Pointer[context.Context] // of the last term in which this instance led; nil before the first
}

// Lead makes this instance the leader until ctx ends. ctx is the context of the lock that the leader holds. Lead is the
// function lead of campaign.Run.
func (e *Elector) Lead(ctx context.Context, _ int64) error {
	e.term.Store(&ctx)
	<-ctx.Done()
	return nil
}

// IsLeader implements [gocron.Elector].
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil { // Err also notices a process that was suspended
		return ErrNotLeader
	}
	return nil
}

// NewJob adds a job to a scheduler that has this Elector. The context of the job carries the lock of the term in which the job
// begins, for its fencing token: read core.MustHold(ctx, "leader").Token() when the job begins, because MustHold panics after a
// loss. The context ends with that term, and when the scheduler shuts down.
func (e *Elector) NewJob(s gocron.Scheduler, when gocron.JobDefinition, name string, job func(context.Context) error, opts ...gocron.JobOption) (gocron.Job, error) {
	task := gocron.NewTask(func(ctx context.Context) error {
		if err := e.IsLeader(ctx); err != nil { // the term may have ended since gocron asked
			return err
		}
		term := *e.term.Load()
		ctx, cancel := context.WithCancelCause(context.WithValue(ctx, core.ContextKey, term.Value(core.ContextKey))) //nolint:staticcheck // core looks for this text
		defer cancel(nil)
		defer context.AfterFunc(term, func() { cancel(context.Cause(term)) })()
		return job(ctx)
	})
	return s.NewJob(when, task, slices.Concat(opts, []gocron.JobOption{gocron.WithName(name)})...)
}
