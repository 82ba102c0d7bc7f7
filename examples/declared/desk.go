package main

import (
	"context"
	"sync"
	"time"
)

// desk does the work of the handlers. A step can set a task that runs while a handler works.
type desk struct {
	mu    sync.Mutex
	tasks map[string]func()
	pace  time.Duration // the time of work without a task
}

func newDesk() *desk { return &desk{pace: time.Millisecond, tasks: map[string]func(){}} }

// during makes the next handler for a subject run task.
func (d *desk) during(subject string, task func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks[subject] = task
}

func (d *desk) setPace(pace time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pace = pace
}

// take removes and returns the task for a subject, or returns nil.
func (d *desk) take(subject string) (task func(), pace time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	task = d.tasks[subject]
	delete(d.tasks, subject)
	return task, d.pace
}

// work does the work of the service.
func (d *desk) work(ctx context.Context, subject string) error {
	task, pace := d.take(subject)
	if task != nil {
		task()
		return ctx.Err()
	}
	timer := time.NewTimer(pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
