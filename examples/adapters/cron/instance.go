package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// task is what the job is called with, and what its key can name.
type task struct{ Tick string }

// runInstance is one process of the service: clients, rules, the job, the timer.
func runInstance(ctx context.Context, options *redis.Options, s *settings, first time.Time, job func(tick string)) (err error) {
	rdb := redis.NewClient(options)
	defer func() { err = errors.Join(err, rdb.Close()) }()
	locks, err := core.New(rdb, core.WithPrefix("adapters-cron:"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
	rules, err := ruleset.Watch(s.rules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rules.Close()) }()

	closeDay, err := locked(locks, rules, job)
	if err != nil {
		return err
	}
	for i := range s.ticks {
		tick := first.Add(time.Duration(i) * s.every)
		if !until(ctx, tick) {
			return errors.Join(err, ctx.Err())
		}
		_, failed := closeDay(ctx, task{Tick: tick.Format("150405.000")})
		err = errors.Join(err, failed) // a log, in your service; the next tick is another one
	}
	return err
}

// locked puts the job under the rule of the file. Its context ends if the lock is lost.
func locked(locks *core.Client, rules ruleset.Provider, job func(tick string)) (func(context.Context, task) (struct{}, error), error) {
	locking, err := aspect.New(locks, aspect.WithSet(rules))
	if err != nil {
		return nil, err
	}
	closeDay, err := aspect.Wrap(locking, ruleset.Rule{Endpoint: ruleset.Func("close-day")},
		func(ctx context.Context, t task) (struct{}, error) {
			job(t.Tick)
			return struct{}{}, ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	return closeDay, locking.Check()
}

// until waits for a time, and reports whether it came.
func until(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
