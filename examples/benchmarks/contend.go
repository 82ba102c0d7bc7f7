package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// contest is the part of a match in one process: a number of callers that all want one key.
type contest struct {
	by        contender // the contender of the workers that the parent starts
	Contender string
	Addr      string
	Key       string
	Guard     string // path of the file of the guard
	Callers   int    // the number of callers in each process
	InAll     int    // the number of callers in all processes
	Hold      time.Duration
	For       time.Duration
	Grace     time.Duration // the time after the end for callers that wait for their last turn
}

// tally is the result of a contest for all callers of a side.
type tally struct {
	Turns    []int64       // turns of each caller
	Waits    []float64     // ms, including waits for turns after the end
	Failures int64         // acquisitions and releases that returned an error
	Failure  string        // one of these errors
	Drought  time.Duration // the longest time in which a process had no turn
	Held     time.Duration // the length of all holds, including the last ones
}

func (t *tally) add(other tally) {
	t.Turns = append(t.Turns, other.Turns...)
	t.Waits = append(t.Waits, other.Waits...)
	t.Failures += other.Failures
	if t.Failure == "" {
		t.Failure = other.Failure
	}
	t.Drought = max(t.Drought, other.Drought)
	t.Held += other.Held
}

func (t *tally) total() int64 {
	var sum int64
	for _, n := range t.Turns {
		sum += n
	}
	return sum
}

// contend runs a contest in this process. It calls ready when everything is connected; ready returns
// the time of the start.
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

func (c *contest) race(ctx context.Context, locker Locker, g *guard, start time.Time) tally {
	end := start.Add(c.For)
	ctx, cancel := context.WithDeadline(ctx, end.Add(c.Grace))
	defer cancel()
	time.Sleep(time.Until(start))

	results := make([]caller, c.Callers)
	gaps := drought{last: start, end: end}
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i].run(ctx, c, locker, g, &gaps) })
	}
	wg.Wait()
	t := sum(results)
	t.Drought = gaps.close()
	return t
}

// caller takes turns. Each caller has a separate cache line.
type caller struct {
	turns, failures int64
	failure         error
	waits           []float64
	held            time.Duration
	_               [64]byte
}

// run takes turns until a turn starts after the end. That turn is not counted, but its wait is. No waiting
// caller is interrupted, because canceling would be another benchmark.
func (r *caller) run(ctx context.Context, c *contest, locker Locker, g *guard, gaps *drought) {
	for ctx.Err() == nil {
		asked := time.Now()
		unlock, err := locker.Lock(ctx, c.Key)
		if err != nil {
			r.failures, r.failure = r.failures+1, err
			if time.Now().After(gaps.end) {
				return
			}
			continue
		}
		now := time.Now()
		g.enter()
		gaps.turn(now)
		hold(c.Hold)
		g.leave()
		r.held += time.Since(now)
		if err := unlock(ctx); err != nil {
			r.failures, r.failure = r.failures+1, err
		}
		r.waits = append(r.waits, ms(now.Sub(asked)))
		if now.After(gaps.end) {
			return
		}
		r.turns++
	}
}

func sum(results []caller) tally {
	t := tally{}
	for i := range results {
		r := &results[i]
		t.Turns = append(t.Turns, r.turns)
		t.Waits = append(t.Waits, r.waits...)
		t.Failures += r.failures
		t.Held += r.held
		if r.failure != nil {
			t.Failure = r.failure.Error()
		}
	}
	return t
}

// drought measures the longest time in which a process has no turn, from the start to the end.
type drought struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	end     time.Time
}

func (d *drought) turn(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.After(d.end) {
		at = d.end
	}
	d.longest = max(d.longest, at.Sub(d.last))
	d.last = at
}

func (d *drought) close() time.Duration {
	d.turn(d.end)
	return d.longest
}
