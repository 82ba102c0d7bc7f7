package main

import (
	"context"
	"errors"
	"fmt"
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
const stepLimit = 20 * time.Second

func steps() []step {
	list := []step{
		{"endpoints", "Every endpoint is called twice at the same time", fmt.Sprintf("%d as declared", len(declaredEndpoints())), callEach},
		{"overlay", "YAML changes one field of a rule that is in the .proto", "refused before 30 s", overlay},
		{"none", "none: true takes a route out of a wildcard", "423, and 200 without a lock", leaveOut},
		{"effective", "A rule in force, and the source of each value", "yaml, proto, profile, default", showEffective},
		{"start-up", "The service does not start with a mistake in its rules", "3 refused", startWithTypos},
		{"rename", "An editor saves the file while the service runs", "409, then 204 after 1500 ms", saveFile},
		{"configmap", "Kubernetes replaces the file while the service runs", "409, then 202", swapConfigMap},
		{"kill switch", "disabled: true, and back", "423, 200, 423", killSwitch},
		{"dry run", "dry_run: true, and back", "423, 200 (busy counted), 423", dryRun},
		{"typos", "A file with a mistake is published while the service runs", "4 refused, old rules in force", reloadTypos},
		{"rekey", "A rule gets another key while the service runs", "refused, then both keys", rekey},
		{"traffic", "Four callers continued during all steps", "0 failed", endTraffic},
	}
	for i, s := range list {
		list[i].run = thenRestore(s.run)
	}
	return list
}

// thenRestore returns a step that runs run and then restores the original rule file.
func thenRestore(run func(context.Context, *demo) (string, error)) func(context.Context, *demo) (string, error) {
	return func(ctx context.Context, d *demo) (string, error) {
		seen, err := run(ctx, d)
		return seen, errors.Join(err, d.restore(ctx))
	}
}

// perform runs the steps and prints the table.
func (d *demo) perform(ctx context.Context, all []step) error {
	began := time.Now()
	var results []result
	for i, s := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.out.titlef("%d/%d %s", i+1, len(all), s.title)
		results = append(results, d.attempt(ctx, s))
	}
	d.out.titlef("Summary, after %.1f s", time.Since(began).Seconds())
	d.out.table(results)
	return failures(results)
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
