package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// step is one thing to see. seen is what the table shows beside what was expected;
// an error says what is not as it should be.
type step struct {
	name     string
	title    string
	expected string
	run      func(ctx context.Context, d *demo) (seen string, err error)
}

// stepLimit is far more than any step takes: it ends one that hangs.
const stepLimit = 30 * time.Second

func steps() []step {
	return []step{
		{"oversold", "500 customers, 100 teapots, the lock switched off", "more than 100 sold", sellWithoutLock},
		{"sold", "The same 500 customers and 100 teapots, with the lock", "exactly 100 sold", sellWithLock},
		{"held", "What a held lock looks like in Redis", "one holder, count 1", showHeld},
		{"reentry", "A handler that calls code which takes the same lock", "count 2, then free", reenter},
		{"gin", "The lock is taken: each strategy as an HTTP client sees it", "409 204/skipped 200/null 202 200/unlocked", refuseHTTP},
		{"grpc", "The lock is taken: each strategy as a gRPC client sees it", "ABORTED OK/skipped OK/null OK OK/unlocked", refuseGRPC},
		{"watchdog", "A handler that takes longer than the lease", "one holder throughout", outlastLease},
		{"killed", "A process that is killed while it holds the lock", "served when the lease ends", killHolder},
		{"lost", "A lock that is lost under its handler", "500, INTERNAL", loseLock},
		{"outage", "Redis stops, and comes back", "503, UNAVAILABLE, 0 unlocked", stopRedis},
		{"trace", "One request that had to wait, as a trace", "acquire, hold, work inside", showTrace},
		{"clean", "What is left in Redis", "0 keys", showLeft},
	}
}

// choose picks steps by their names.
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
	return step{}, fmt.Errorf("-steps: there is no step %q; write all, none, or some of %s", name, strings.Join(known, ","))
}

// perform runs the steps, and prints the table.
func (d *demo) perform(ctx context.Context, chosen []step) error {
	began := time.Now()
	var results []result
	for i, s := range chosen {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.out.titlef("%d/%d %s", i+1, len(chosen), s.title)
		results = append(results, d.attempt(ctx, s))
	}
	if len(results) == 0 {
		return nil
	}
	d.out.titlef("Summary, after %.1f s", time.Since(began).Seconds())
	d.out.table(results)
	return failures(results)
}

// result is how a step went.
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
		d.out.linef("NOT AS IT SHOULD BE: %v", err)
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
