package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// wakeup is a worker process that waits for a lock which its parent holds.
type wakeup struct {
	Contender string
	Addr      string
	Key       string
}

// wakeups measures the time from the release in one process to the hold in another.
// The clock is the wall clock of the one machine that both run on; it starts before
// the release is called, so that its way to Redis counts.
func wakeups() scenario {
	return scenario{
		name:       "wakeup",
		contenders: libraries(),
		measure:    measureWakeup,
		rows: []row{{
			title: "release in one process to hold in another: ms, median", metric: "latency", digits: 3,
			bar: atMost(0.4),
		}},
	}
}

func measureWakeup(ctx context.Context, e env, c contender) (sample, error) {
	locker, err := c.open(e.addr, 2)
	if err != nil {
		return nil, err
	}
	defer locker.Close()
	w, err := startWorker(ctx, job{Wakeup: &wakeup{Contender: c.name, Addr: e.addr, Key: e.key}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.wait() }() // the end of its input stops it
	turns := 200
	if e.quick {
		turns = 10
	}
	latencies := make([]float64, 0, turns)
	for range turns {
		latency, err := oneWakeup(ctx, locker, w, e.key)
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, float64(latency)/float64(time.Millisecond))
	}
	return sample{"latency": median(latencies)}, nil
}

func oneWakeup(ctx context.Context, locker Locker, w *worker, key string) (time.Duration, error) {
	unlock, err := locker.Lock(ctx, key)
	if err != nil {
		return 0, err
	}
	if err := w.send("wait"); err != nil {
		return 0, err
	}
	// Until the worker waits; the random part keeps polls from falling into step.
	time.Sleep(4*time.Millisecond + rand.N(4*time.Millisecond))
	released := time.Now().UnixNano()
	if err := unlock(ctx); err != nil {
		return 0, err
	}
	var held int64
	if err := w.receive(&held); err != nil {
		return 0, fmt.Errorf("worker: %w", err)
	}
	if held < released {
		return 0, fmt.Errorf("%s was held %d ns before its release", key, released-held)
	}
	return time.Duration(held - released), nil
}

// serve waits for the lock as often as the parent says, and answers with the moment
// at which it had it.
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
	for {
		var word string
		if err := l.receive(&word); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		unlock, err := locker.Lock(ctx, wk.Key)
		if err != nil {
			return err
		}
		held := time.Now().UnixNano()
		if err := unlock(ctx); err != nil {
			return err
		}
		if err := l.send(held); err != nil {
			return err
		}
	}
}
