package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// match is a measurement of callers that want one key, in one process or in several.
type match struct {
	sides    func(c contender) []side
	held     time.Duration
	duration time.Duration
}

// side is a number of equal processes.
type side struct {
	contender          contender
	processes, callers int // callers in each
}

// oneSide returns a function that returns a single side, with the given numbers of processes and of callers in each.
func oneSide(processes, callers int) func(c contender) []side {
	return func(c contender) []side { return []side{{c, processes, callers}} }
}

func (m match) measure(ctx context.Context, e env, by contender) (s sample, err error) {
	path, err := newGuardFile()
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	g, err := openGuard(path)
	if err != nil {
		return nil, err
	}
	defer g.close()

	before, err := countCosts(ctx, e.redis, by.sends)
	if err != nil {
		return nil, err
	}
	c := contest{
		Addr: e.addr, Key: e.key, Guard: path,
		Hold: m.held, For: e.duration(m.duration), Grace: 10 * time.Second,
	}
	if e.quick {
		c.Grace = 3 * time.Second
	}
	sides, err := m.play(ctx, e, c, m.sides(by))
	if err != nil {
		return nil, err
	}
	after, err := countCosts(ctx, e.redis, by.sends)
	if err != nil {
		return nil, err
	}
	s, err = evaluate(sides, c.For)
	if err != nil {
		return nil, err
	}
	turns := float64(g.page.entered.Load())
	s["executed"] = (after.executed - before.executed) / turns
	s["sent"] = (after.sent - before.sent) / turns
	s["redis"] = 1e6 * (after.cpu - before.cpu) / turns
	s["violations"] = float64(g.violations())
	return s, nil
}

// play returns a tally for each side.
func (m match) play(ctx context.Context, e env, c contest, sides []side) ([]tally, error) {
	var contests []*contest
	inAll := 0
	for _, side := range sides {
		inAll += side.processes * side.callers
	}
	for _, side := range sides {
		for range side.processes {
			one := c
			one.by, one.Contender = side.contender, side.contender.inWorker()
			one.Callers, one.InAll = side.callers, inAll
			contests = append(contests, &one)
		}
	}
	processes, err := e.contendIn(ctx, contests)
	if err != nil {
		return nil, err
	}
	tallies := make([]tally, len(sides))
	for i, side := range sides {
		for _, process := range processes[:side.processes] {
			tallies[i].add(process)
		}
		processes = processes[side.processes:]
	}
	return tallies, nil
}

// evaluate computes the metrics of all callers and of the first side.
func evaluate(sides []tally, duration time.Duration) (sample, error) {
	var all tally
	for _, side := range sides {
		all.add(side)
	}
	if all.total() == 0 {
		return nil, errors.New("no caller got the lock: " + all.Failure)
	}
	if all.Failures > 0 {
		fmt.Fprintf(os.Stderr, "  %d failed, such as: %s\n", all.Failures, all.Failure)
	}
	first, p99 := sides[0], quantile(all.Waits, 0.99)
	rate := float64(all.total()) / duration.Seconds()
	queue := 1000 * float64(len(all.Turns)) / rate
	return sample{
		"rate":     rate,
		"jain":     jain(all.Turns),
		"p50":      quantile(all.Waits, 0.5),
		"p99":      p99,
		"queue":    queue,
		"queues":   p99 / queue,
		"longest":  quantile(all.Waits, 1),
		"held":     ms(all.Held) / float64(len(all.Waits)),
		"drought":  ms(all.Drought),
		"failures": float64(all.Failures),

		"first share":   100 * float64(first.total()) / float64(all.total()),
		"first p99":     quantile(first.Waits, 0.99),
		"first longest": quantile(first.Waits, 1),
		"first drought": ms(first.Drought),
	}, nil
}
