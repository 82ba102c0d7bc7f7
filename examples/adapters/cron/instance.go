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

// task is the argument of the job. Its key can use the fields.
type task struct{ Tick string }

// runInstance runs an instance of the service: clients, rules, the job, the timer.
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
		err = errors.Join(err, failed) // a real service logs this; the next tick tries again
	}
	return err
}

// locked wraps the job in the rule of the file. The context of the job is canceled if the lock is
// lost.
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

// until waits until a time. It returns false if ctx is done before that.
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
