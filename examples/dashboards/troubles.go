package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// between is the time from one trouble to the next.
const between = 20 * time.Second

// trouble is something that the dashboard and an alert show.
type trouble struct {
	name  string
	begin func(context.Context) error
	end   func(context.Context) error // nil: it is over by itself
}

func (d *demo) troubles() []trouble {
	return []trouble{
		{"a lock is lost: somebody deletes its key", d.shop.LoseLock, nil},
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

// live has customers come, and unless it is calm troubles, until ctx ends.
func (d *demo) live(ctx context.Context, calm bool) {
	var running sync.WaitGroup
	running.Go(func() { d.shop.Load(ctx) })
	if !calm {
		running.Go(func() { d.trouble(ctx) })
	}
	running.Wait()
}

func (d *demo) trouble(ctx context.Context) {
	for {
		for _, t := range d.troubles() {
			if !d.sleep(ctx, between) {
				return
			}
			d.tell(ctx, t.name, t.begin)
			if t.end == nil {
				continue
			}
			if !d.sleep(ctx, between/3) {
				return
			}
			d.tell(ctx, "that is over: "+t.name, t.end)
		}
	}
}

// tell says what is done, and does it.
func (d *demo) tell(ctx context.Context, what string, do func(context.Context) error) {
	fmt.Fprintf(d.out, "\n--- %s\n", what)
	if err := do(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(d.out, "    %v\n", err)
	}
}

// sleep waits, and reports whether ctx is still alive.
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
