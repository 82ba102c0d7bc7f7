package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// step is one demonstration. run returns the observed result, which the table shows beside the
// expected one. An error means that the result is wrong.
type step struct {
	name     string
	title    string
	expected string
	run      func(ctx context.Context, d *demo) (seen string, err error)
}

// stepLimit is the time limit of a step. Every step takes much less unless it hangs.
const stepLimit = 30 * time.Second

func steps() []step {
	return []step{
		{"oversold", "500 customers, 100 teapots, the lock switched off", "more than 100 sold", sellWithoutLock},
		{"sold", "The same 500 customers and 100 teapots, with the lock", "exactly 100 sold", sellWithLock},
		{"held", "The data of a held lock in Redis", "one holder, count 1", showHeld},
		{"reentry", "A handler that calls code with the same lock", "count 2, then free", reenter},
		{"gin", "The lock is taken: the answer of each strategy over HTTP", "409 204/skipped 200/null 202 200/unlocked", refuseHTTP},
		{"grpc", "The lock is taken: the answer of each strategy over gRPC", "ABORTED OK/skipped OK/null OK OK/unlocked", refuseGRPC},
		{"watchdog", "A handler that takes longer than the lease", "one holder throughout", outlastLease},
		{"killed", "A process that is killed while it holds the lock", "served when the lease ends", killHolder},
		{"lost", "A handler that loses its lock", "500, INTERNAL", loseLock},
		{"outage", "Redis stops and starts again", "503, UNAVAILABLE, 0 unlocked", stopRedis},
		{"trace", "The trace of a request that waited", "acquire, hold, work inside", showTrace},
		{"clean", "The data left in Redis", "0 keys", showLeft},
	}
}

// choose returns the steps with the given names.
func choose(all []step, names string) ([]step, error) {
	switch names {
	case "all":
		return all, nil
	case "none":
		return nil, nil
	}
	var chosen []step
	for name := range strings.SplitSeq(names, ",") {
		s, err := find(all, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

func find(all []step, name string) (step, error) {
	known := make([]string, 0, len(all))
	for _, s := range all {
		if s.name == name {
			return s, nil
		}
		known = append(known, s.name)
	}
	return step{}, fmt.Errorf("-steps: unknown step %q: write all, none, or some of %s", name, strings.Join(known, ","))
}

// perform runs the steps, prints the table, and returns the results. Its error joins the errors of the steps.
func (d *demo) perform(ctx context.Context, chosen []step) ([]result, error) {
	began := time.Now()
	var results []result
	for i, s := range chosen {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d.out.titlef("%d/%d %s", i+1, len(chosen), s.title)
		results = append(results, d.attempt(ctx, s))
	}
	if len(results) == 0 {
		return nil, nil
	}
	d.out.titlef("Summary, after %.1f s", time.Since(began).Seconds())
	d.out.table(results)
	return results, failures(results)
}

// result is the result of a step.
type result struct {
	step

	seen string
	err  error
}

func (d *demo) attempt(ctx context.Context, s step) result {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	seen, err := s.run(ctx, d)
	if err != nil {
		d.out.linef("WRONG: %v", err)
	}
	return result{step: s, seen: seen, err: err}
}

func failures(results []result) error {
	var failed []error
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, fmt.Errorf("step %s: %w", r.name, r.err))
		}
	}
	return errors.Join(failed...)
}
