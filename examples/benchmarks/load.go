package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// load is a worker process whose callers lock and unlock keys that no other caller wants. It is a separate
// process, so that garbage, goroutines and connections of one library do not affect the next.
type load struct {
	Contender string
	Addr      string
	Prefix    string
	Callers   int
	Warm      time.Duration // not measured, for new connections
	For       time.Duration
}

// pace is the result of a load. P50 and P99 are the times of a lock and its unlock in ms. CPU is the CPU time
// of the process per lock and unlock in µs.
type pace struct {
	Rate, P50, P99, CPU float64
}

func (l *load) measure(ctx context.Context, e env, by contender) (p pace, err error) {
	w, err := e.start(ctx, by, job{Load: l})
	if err != nil {
		return p, err
	}
	err = errors.Join(w.receive(&p), w.wait())
	return p, err
}

func (l *load) serve(ctx context.Context, to link) error {
	c, err := find(l.Contender)
	if err != nil {
		return err
	}
	locker, err := c.open(l.Addr, 1)
	if err != nil {
		return err
	}
	defer locker.Close()
	if err := warmUp(ctx, locker, l.Prefix+":warm"); err != nil {
		return err
	}
	p, err := l.run(ctx, locker)
	return errors.Join(err, to.send(p))
}

func (l *load) run(ctx context.Context, locker Locker) (pace, error) {
	start := time.Now().Add(l.Warm)
	end := start.Add(l.For)
	times, errs := make([][]float64, l.Callers), make([]error, l.Callers)
	var wg sync.WaitGroup
	for i := range l.Callers {
		wg.Go(func() { times[i], errs[i] = lockUntil(ctx, locker, l.Prefix+":"+strconv.Itoa(i)+":", start, end) })
	}
	time.Sleep(time.Until(start))
	used := cpuTime()
	time.Sleep(time.Until(end))
	used = cpuTime() - used
	wg.Wait()
	var all []float64
	for _, some := range times {
		all = append(all, some...)
	}
	return pace{
		Rate: float64(len(all)) / l.For.Seconds(),
		P50:  quantile(all, 0.5),
		P99:  quantile(all, 0.99),
		CPU:  1000 * ms(used) / float64(len(all)),
	}, errors.Join(errs...)
}

// lockUntil cycles through 16 keys, so that no key is new to Redis or to the library, and the key changes with
// each turn. It returns the durations of the turns that ended between start and end.
func lockUntil(ctx context.Context, locker Locker, prefix string, start, end time.Time) ([]float64, error) {
	keys := make([]string, 16)
	for i := range keys {
		keys[i] = prefix + strconv.Itoa(i)
	}
	var times []float64
	for n, began := 0, time.Now(); began.Before(end); n++ {
		unlock, err := locker.Lock(ctx, keys[n%16])
		if err != nil {
			return times, err
		}
		if err := unlock(ctx); err != nil {
			return times, err
		}
		now := time.Now()
		if now.After(start) && now.Before(end) {
			times = append(times, ms(now.Sub(began)))
		}
		began = now
	}
	return times, nil
}
