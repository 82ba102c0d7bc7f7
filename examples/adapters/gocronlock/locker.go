// Package gocronlock runs the jobs of gocron (github.com/go-co-op/gocron/v2) in one of several instances of a service. Copy
// locker.go, elector.go or both. With a [Locker], each run of a job takes a lock, and the instances share the jobs:
//
//	locker := gocronlock.NewLocker(locks, 5*time.Second)
//	_, err := locker.NewJob(scheduler, gocron.CronJob("0 3 * * *", false), "close-day", closeDay)
//
// With an [Elector], one instance, the leader, runs all jobs. Package campaign in examples/leader elects the leader:
//
//	var elector gocronlock.Elector
//	ended := make(chan error, 1)
//	go func() { ended <- campaign.Run(ctx, locks.Lock("leader"), elector.Lead, logError) }()
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(&elector))
//	_, err = elector.NewJob(scheduler, gocron.CronJob("0 3 * * *", false), "close-day", closeDay)
//
// gocron gives a job a context that does not end when the lock is lost, so register jobs with NewJob and not with the scheduler.
// Shut down the scheduler first. Then end the context of campaign.Run and wait for its result. Close the lock client last.
package gocronlock

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock/core"
)

// Locker implements [gocron.Locker]. It never waits: the other instances skip the run, and gocron calls
// [gocron.AfterLockError] in them. The error matches [core.ErrNotAcquired] if another instance has the lock, or if the last
// run of this instance has lost its lock and has not ended yet. It matches [core.ErrUnavailable] if Redis does not answer:
// then no instance runs the job. gocron does not repeat a skipped run, and so it never runs a one-time job that was skipped.
type Locker struct {
	locks *core.Client
	keep  time.Duration

	mu   sync.Mutex
	runs map[string]*run // by the name of the job, which has one run at a time: gocron does not tell a task for which run it is called
}

// run is a run of a job. It implements [gocron.Lock].
type run struct {
	locker *Locker
	job    string
	ctx    context.Context //nolint:containedctx // of the job, which gocron does not pass
	hold   *core.Hold
	until  time.Time // the lock stays taken until then
}

// NewLocker returns a Locker. keep is the shortest time between the start of a run and the release of its lock. It must be longer
// than the clocks of the instances differ, otherwise an instance whose clock is late repeats a job that has already ended. It
// must be shorter than the time between two runs.
func NewLocker(locks *core.Client, keep time.Duration) *Locker {
	return &Locker{locks: locks, keep: keep, runs: map[string]*run{}}
}

// NewJob adds a job to a scheduler. The context of the job carries the lock and ends when the lock is lost, and when the scheduler
// shuts down. The name of the lock is "job:" and the name of the job.
//
// All instances need the same times, such as the times of a [gocron.CronJob]. A [gocron.DurationJob] counts from the start of its
// instance, so that each instance would run it. It is an error here; an [Elector] accepts it.
func (l *Locker) NewJob(s gocron.Scheduler, when gocron.JobDefinition, name string, job func(context.Context) error, opts ...gocron.JobOption) (gocron.Job, error) {
	switch reflect.TypeOf(when) {
	case reflect.TypeOf(gocron.DurationJob(0)), reflect.TypeOf(gocron.DurationRandomJob(0, 0)):
		return nil, fmt.Errorf("gocronlock: job %q: a duration counts from the start of each instance, so that each would run the job: "+
			"write gocron.CronJob, such as CronJob(\"*/5 * * * *\", false), or use an Elector", name)
	}
	task := gocron.NewTask(func() error {
		l.mu.Lock()
		r := l.runs[name]
		l.mu.Unlock()
		if r == nil {
			return fmt.Errorf("gocronlock: job %q has no lock: a scheduler with an Elector calls no Locker", name)
		}
		return job(r.ctx)
	})
	return s.NewJob(when, task, slices.Concat(opts, []gocron.JobOption{gocron.WithName(name), gocron.WithDistributedJobLocker(l)})...)
}

// Lock implements [gocron.Locker].
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	r := &run{locker: l, job: job, until: time.Now().Add(l.keep)}
	if !l.begin(r) {
		return nil, fmt.Errorf("gocronlock: job %q: the last run of this instance has not ended: %w", job, core.ErrNotAcquired)
	}
	var err error
	if r.ctx, r.hold, err = l.locks.Lock("job:"+job).Acquire(ctx, core.WaitTime(0)); err != nil {
		l.end(r)
		return nil, err
	}
	return r, nil
}

// begin records a run. It returns false if the job has a run already.
func (l *Locker) begin(r *run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[r.job] != nil {
		return false
	}
	l.runs[r.job] = r
	return true
}

func (l *Locker) end(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, r.job)
}

// Unlock implements [gocron.Lock]. It works although ctx ends at a shutdown.
func (r *run) Unlock(ctx context.Context) error {
	defer r.locker.end(r)
	if rest := time.Until(r.until); rest >= time.Millisecond {
		return r.hold.Leave(ctx, rest)
	}
	return r.hold.Release(ctx)
}
