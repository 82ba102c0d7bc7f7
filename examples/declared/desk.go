package main

import (
	"context"
	"sync"
	"time"
)

// desk is where the handlers of the service work. A step can say what happens while
// one is at work.
type desk struct {
	mu    sync.Mutex
	tasks map[string]func()
	pace  time.Duration // how long work takes otherwise
}

func newDesk() *desk { return &desk{pace: time.Millisecond, tasks: map[string]func(){}} }

// during has the next handler for a subject do task.
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

// take takes the task for a subject away, nil if there is none.
func (d *desk) take(subject string) (task func(), pace time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	task = d.tasks[subject]
	delete(d.tasks, subject)
	return task, d.pace
}

// work is the work of the service.
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
