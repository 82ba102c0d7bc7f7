// Cron runs a job in one instance of a fleet although every instance has the timer.
//
//	go -C examples run ./shops/cron
//
// The job is a function behind aspect.Wrap. An instance that does not get the lock skips the
// tick, which is not an error. The debounce window limits the job to one run per tick.
// Without the window, an instance whose timer fires after the job has returned finds the lock free
// and runs the job once more. The window must be longer than the difference between clocks and
// shorter than the time between ticks.
//
// Any instance may run the job of a tick. For work without an end, see examples/leader: one instance does it until it
// shuts down or dies.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/failpolicy"
)

const (
	fleetSize = 4
	interval  = 700 * time.Millisecond // between ticks; in your crontab it is a minute
	window    = 500 * time.Millisecond
	watchdog  = 500 * time.Millisecond // the lock of a dead instance expires after it; 30 s by default
)

var nightly = ruleset.Rule{
	Name:     "nightly-report",
	Key:      "cron:nightly-report",
	Debounce: window,
	OnBusy:   failpolicy.Skip,
}

func main() { proof.Main("cron", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	j := &journal{runs: make(map[int]int)}
	var fleet []*instance
	for range fleetSize {
		in, err := start(ctx, p, j)
		if err != nil {
			return err
		}
		fleet = append(fleet, in)
	}

	p.Titlef("%d instances tick at the same time", fleetSize)
	for tick := 1; tick <= 3; tick++ {
		_, failed := tickAll(ctx, fleet, tick)
		p.Checkf(failed == nil && j.count(tick) == 1, "tick %d: %d run", tick, j.count(tick))
		time.Sleep(interval)
	}

	p.Titlef("their clocks differ by more than the duration of the job")
	for _, in := range fleet {
		_, noWait := in.withoutWindow(ctx, 4)
		_, debounced := in.report(ctx, 5)
		if err := errors.Join(noWait, debounced); err != nil {
			return err
		}
	}
	p.Checkf(j.count(4) > 1, "without a window: %d runs", j.count(4))
	p.Checkf(j.count(5) == 1, "with a window: %d run", j.count(5))
	time.Sleep(interval)

	p.Titlef("the instance that runs the job dies during the job")
	dead, lost := tickAll(ctx, fleet, deathTick)
	p.Checkf(dead >= 0 && errors.Is(lost, core.ErrLost), "tick %d: no instance finished; the context of the dead instance's job ended with: %v", deathTick, lost)
	if dead < 0 {
		return nil
	}
	time.Sleep(interval)
	_, failed := tickAll(ctx, slices.Delete(fleet, dead, dead+1), deathTick+1)
	p.Checkf(failed == nil && j.count(deathTick+1) == 1, "tick %d: %d run, by another instance", deathTick+1, j.count(deathTick+1))
	return nil
}

// instance is a process of the fleet, with separate clients and the job.
type instance struct {
	cut                   func() // cuts the instance off from Redis, like a power failure
	journal               *journal
	report, withoutWindow func(ctx context.Context, tick int) (string, error)
}

func start(ctx context.Context, p *proof.Proof, j *journal) (*instance, error) {
	locks, cut, err := p.Instance(ctx, core.WithWatchdog(watchdog))
	if err != nil {
		return nil, err
	}
	locking, err := aspect.New(locks)
	if err != nil {
		return nil, err
	}
	in := &instance{cut: cut, journal: j}
	if in.report, err = aspect.Wrap(locking, nightly, in.makeReport); err != nil {
		return nil, fmt.Errorf("the report: %w", err)
	}
	bare := ruleset.Rule{Name: "bare", Key: "cron:bare", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip}
	in.withoutWindow, err = aspect.Wrap(locking, bare, in.makeReport)
	return in, err
}

// makeReport does the job. Its context is canceled when the lock is lost, because another instance may run
// the job from then on.
func (in *instance) makeReport(ctx context.Context, tick int) (string, error) {
	if tick == deathTick {
		in.cut() // Redis gets no more commands from this instance
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	time.Sleep(5 * time.Millisecond)
	in.journal.record(tick)
	return "report written", ctx.Err()
}
