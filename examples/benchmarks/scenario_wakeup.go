package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// wakeup is a worker process that locks and unlocks a key on request. It answers with the wall-clock
// time in ns after it got the lock, or before it released the lock.
type wakeup struct {
	Contender string
	Addr      string
	Key       string
}

// wakeups measures the time from the release in one process to the hold in another, by the wall clock of the
// machine. The time starts before the call of the release, so that it includes the way to Redis. With a
// message it takes two round trips: half a round trip for the release, half for the message, and one for the
// attempt.
func wakeups(roundTrip time.Duration) scenario {
	title := "release in one process to hold in another: ms, median"
	if roundTrip > 0 {
		title = distance(roundTrip) + " away, " + title
	}
	return scenario{
		name:       "wakeup-" + distance(roundTrip),
		roundTrip:  roundTrip,
		long:       roundTrip > 0 && roundTrip != time.Millisecond,
		contenders: libraries(),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			return measureWakeup(ctx, e, c, roundTrip)
		},
		rows: []row{
			{title: title, metric: "p50", digits: 3, bar: atMost(0.4 + 2*ms(roundTrip))},
			{title: "… p99", metric: "p99", digits: 3},
			{title: "… wake-ups that did not come within a minute", metric: "lost", bar: atMost(0)},
		},
	}
}

// wakeupTime limits the time of all turns of a library, because a waiter that misses its wake-up may wait for
// ever.
const wakeupTime = time.Minute

func measureWakeup(ctx context.Context, e env, c contender, roundTrip time.Duration) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, wakeupTime) // stops the workers
	defer cancel()
	from, err := e.start(ctx, c, job{Wakeup: &wakeup{Contender: c.inWorker(), Addr: e.addr, Key: e.key}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.wait() }() // the worker exits when its input is closed
	to, err := e.start(ctx, c, job{Wakeup: &wakeup{Contender: c.inWorker(), Addr: e.addr, Key: e.key}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.wait() }()
	turns := 200
	if e.quick {
		turns = 10
	}
	latencies := make([]float64, 0, turns)
	for range turns {
		latency, err := oneWakeup(from, to, roundTrip)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && len(latencies) > 0 {
			return wakeupSample(latencies, 1), nil
		}
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, ms(latency))
	}
	return wakeupSample(latencies, 0), nil
}

func wakeupSample(latencies []float64, lost float64) sample {
	return sample{"p50": median(latencies), "p99": quantile(latencies, 0.99), "lost": lost}
}

func oneWakeup(from, to *worker, roundTrip time.Duration) (time.Duration, error) {
	if _, err := from.ask("lock"); err != nil {
		return 0, err
	}
	if err := to.send("lock"); err != nil {
		return 0, err
	}
	// The waiter makes an attempt, subscribes, and makes a second attempt before it waits. The random part keeps
	// polls out of phase.
	time.Sleep(3*roundTrip + 4*time.Millisecond + rand.N(4*time.Millisecond))
	released, err := from.ask("unlock")
	if err != nil {
		return 0, err
	}
	var held int64
	if err := to.receive(&held); err != nil {
		return 0, fmt.Errorf("worker: %w", err)
	}
	if held < released {
		return 0, fmt.Errorf("held %d ns before the release", released-held)
	}
	_, err = to.ask("unlock")
	return time.Duration(held - released), err
}

// ask sends a word and receives a time.
func (w *worker) ask(word string) (at int64, err error) {
	if err := w.send(word); err != nil {
		return 0, err
	}
	if err := w.receive(&at); err != nil {
		return 0, fmt.Errorf("worker: %w", err)
	}
	return at, nil
}

func (wk *wakeup) serve(ctx context.Context, l link) error {
	c, err := find(wk.Contender)
	if err != nil {
		return err
	}
	locker, err := c.open(wk.Addr, 2)
	if err != nil {
		return err
	}
	defer locker.Close()
	var unlock Unlock
	for {
		var word string
		if err := l.receive(&word); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		at := time.Now()
		if word == "lock" {
			unlock, err = locker.Lock(ctx, wk.Key)
			at = time.Now()
		} else {
			err = unlock(ctx)
		}
		if err != nil {
			return err
		}
		if err := l.send(at.UnixNano()); err != nil {
			return err
		}
	}
}
