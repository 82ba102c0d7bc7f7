package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// between is the time between two problems.
const between = 20 * time.Second

// problem is an incident that the dashboard and an alert show.
type problem struct {
	name  string
	begin func(context.Context) error
	end   func(context.Context) error // nil if the problem ends by itself
}

func (d *demo) problems() []problem {
	return []problem{
		{"a lock is lost: its key is deleted", d.shop.LoseLock, nil},
		{"a lock is held for longer than its limit", d.shop.HoldTooLong, nil},
		{"a Hold is never released", d.shop.Leak, nil},
		{
			"the holder of the export hangs",
			func(ctx context.Context) error { return d.shop.Hang(ctx, between) }, nil,
		},
		{"a deadlock: two transfers in opposite directions", func(ctx context.Context) error { d.shop.Deadlock(ctx); return nil }, nil},
		{
			"a new rule file, which one pod refuses",
			func(context.Context) error { return d.shop.RollOut() },
			func(context.Context) error { return d.shop.RollBack() },
		},
		{"Redis stops", func(context.Context) error { return d.redis.Stop() }, d.redis.Start},
	}
}

// live simulates customers and, unless the demo is calm, causes problems, until ctx is done.
func (d *demo) live(ctx context.Context, calm bool) {
	var running sync.WaitGroup
	running.Go(func() { d.shop.Load(ctx) })
	if !calm {
		running.Go(func() { d.causeProblems(ctx) })
	}
	running.Wait()
}

func (d *demo) causeProblems(ctx context.Context) {
	for {
		for _, t := range d.problems() {
			if !d.sleep(ctx, between) {
				return
			}
			d.announce(ctx, t.name, t.begin)
			if t.end == nil {
				continue
			}
			if !d.sleep(ctx, between/3) {
				return
			}
			d.announce(ctx, "this has ended: "+t.name, t.end)
		}
	}
}

// announce prints the name of a problem and calls do, which causes or ends the problem.
func (d *demo) announce(ctx context.Context, what string, do func(context.Context) error) {
	fmt.Fprintf(d.out, "\n--- %s\n", what)
	if err := do(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(d.out, "    %v\n", err)
	}
}

// sleep waits for the pause. It returns false if ctx is done before that.
func (d *demo) sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
