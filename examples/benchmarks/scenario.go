package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// scenario is a situation in which contenders are measured.
type scenario struct {
	name       string        // for -only
	roundTrip  time.Duration // to Redis
	long       bool          // omitted with -quick
	contenders []contender
	measure    func(ctx context.Context, e env, c contender) (sample, error)
	rows       []row
}

// sample is the result of a measurement, by metric.
type sample map[string]float64

// env holds the parameters of a run for a measurement.
type env struct {
	addr  string // address at the distance of the scenario
	redis string // address without a distance
	quick bool
	key   string // unique in the whole run

	profiles string // folder for CPU profiles of worker processes; empty: none
}

// duration returns the duration of a measurement: d, or much less with -quick.
func (e env) duration(d time.Duration) time.Duration {
	if e.quick {
		return min(d, 200*time.Millisecond)
	}
	return d
}

// results are the samples of a scenario: metric → contender → rounds.
type results map[string]map[string][]float64

func (r results) add(contender string, s sample) {
	for metric, value := range s {
		if r[metric] == nil {
			r[metric] = map[string][]float64{}
		}
		r[metric][contender] = append(r[metric][contender], value)
	}
}

// run measures every contender once in each round. Each round starts with a different contender, so that no
// contender always follows the same one.
func (s scenario) run(ctx context.Context, e env, rounds int) (results, error) {
	r := results{}
	for round := range rounds {
		for i := range s.contenders {
			c := s.contenders[(i+round)%len(s.contenders)]
			e.key = fmt.Sprintf("bench:%s:%d:%d", s.name, round, i)
			fmt.Fprintf(os.Stderr, "%-14s round %d of %d  %s\n", s.name, round+1, rounds, c.name)
			sample, err := s.measure(ctx, e, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.name, c.name, err)
			}
			r.add(c.name, sample)
		}
	}
	return r, nil
}

func scenarios() []scenario {
	all := []scenario{alone(), parallel()}
	for _, roundTrip := range roundTrips {
		for _, callers := range []int{1, 8, 32, 128, 1000} {
			all = append(all, free(roundTrip, callers))
		}
	}
	all = append(all, hot()...)
	all = append(all, crowd())
	all = append(all, turns()...)
	all = append(all, besideRedisson()...)
	for _, roundTrip := range roundTrips {
		all = append(all, wakeups(roundTrip))
	}
	return append(all, heldLocks())
}

// besideBefore adds the Interlock of another build to each scenario with Interlock.
func besideBefore(all []scenario, binary string) {
	for i := range all {
		s := &all[i]
		at := slices.IndexFunc(s.contenders, func(c contender) bool { return c.name == interlockName })
		s.contenders = slices.Insert(s.contenders, at+1, contender{name: beforeName, binary: binary})
	}
}
