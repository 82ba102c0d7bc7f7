package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// contest is a number of callers that all want one key.
type contest struct {
	Contender string
	Addr      string
	Key       string
	Guard     string // path, see guard
	Callers   int    // in each process
	InAll     int    // in all of them
	Hold      time.Duration
	For       time.Duration
}

// tally is what came of it.
type tally struct {
	Turns    []int64       // of each caller
	Failures int64         // acquisitions and releases that ended with an error
	Failure  string        // one of them
	Longest  time.Duration // that anybody waited
}

func (t *tally) add(other tally) {
	t.Turns = append(t.Turns, other.Turns...)
	t.Failures += other.Failures
	if t.Failure == "" {
		t.Failure = other.Failure
	}
	t.Longest = max(t.Longest, other.Longest)
}

func (t *tally) total() int64 {
	var sum int64
	for _, n := range t.Turns {
		sum += n
	}
	return sum
}

// contend runs a contest in this process. ready is called when everything is
// connected, and returns the moment of the start.
func contend(ctx context.Context, c *contest, ready func() time.Time) (tally, error) {
	contender, err := find(c.Contender)
	if err != nil {
		return tally{}, err
	}
	locker, err := contender.open(c.Addr, c.InAll)
	if err != nil {
		return tally{}, err
	}
	defer locker.Close()
	g, err := openGuard(c.Guard)
	if err != nil {
		return tally{}, err
	}
	defer g.close()
	if err := warmUp(ctx, locker, fmt.Sprintf("%s:warm:%d", c.Key, os.Getpid())); err != nil {
		return tally{}, err
	}
	return c.race(ctx, locker, g, ready()), nil
}

// warmUp connects and loads scripts.
func warmUp(ctx context.Context, locker Locker, key string) error {
	unlock, err := locker.Lock(ctx, key)
	if err != nil {
		return err
	}
	return unlock(ctx)
}

// grace is how long after the end somebody may still wait for the last turn.
const grace = 10 * time.Second

func (c *contest) race(ctx context.Context, locker Locker, g *guard, start time.Time) tally {
	end := start.Add(c.For)
	ctx, cancel := context.WithDeadline(ctx, end.Add(grace))
	defer cancel()
	time.Sleep(time.Until(start))

	results := make([]caller, c.Callers)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i].run(ctx, c, locker, g, end) })
	}
	wg.Wait()
	return sum(results)
}

// caller takes its turns. Each has a cache line of its own.
type caller struct {
	turns, failures int64
	failure         error
	longest         time.Duration
	_               [64]byte
}

// run ends after the turn that comes after the end. That turn is not counted, and
// nobody is interrupted while it waits: cancelling would be another benchmark.
func (r *caller) run(ctx context.Context, c *contest, locker Locker, g *guard, end time.Time) {
	for ctx.Err() == nil {
		asked := time.Now()
		unlock, err := locker.Lock(ctx, c.Key)
		if err != nil {
			r.failures, r.failure = r.failures+1, err
			if time.Now().After(end) {
				return
			}
			continue
		}
		now := time.Now()
		g.enter()
		hold(c.Hold)
		g.leave()
		if err := unlock(ctx); err != nil {
			r.failures, r.failure = r.failures+1, err
		}
		if now.After(end) {
			return
		}
		r.turns++
		r.longest = max(r.longest, now.Sub(asked))
	}
}

func sum(results []caller) tally {
	t := tally{}
	for i := range results {
		r := &results[i]
		t.Turns = append(t.Turns, r.turns)
		t.Failures += r.failures
		t.Longest = max(t.Longest, r.longest)
		if r.failure != nil {
			t.Failure = r.failure.Error()
		}
	}
	return t
}
