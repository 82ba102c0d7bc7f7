package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/core"
)

// held is a worker process that holds many locks with the watchdog and has no other work. It is a separate process so
// that its heap, goroutines and CPU time can be measured.
type held struct {
	Addr     string
	Prefix   string
	Locks    int
	Watchdog time.Duration
	For      time.Duration
}

// footprint is the cost of the locks for their process.
type footprint struct {
	BytesPerLock      float64
	GoroutinesPerLock float64
	CPU               float64 // seconds in held.For
}

// heldLocks measures 10,000 held locks. The share of CPU is measured over one lease of the watchdog, which has three
// renewals of every lock. With -quick the lease is a tenth, so renewals are ten times as frequent, and the share is
// divided by ten.
func heldLocks() scenario {
	const locks = 10_000
	return scenario{
		name:       "held",
		contenders: []contender{interlock()},
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			h := &held{Addr: e.addr, Prefix: e.key, Locks: locks, Watchdog: core.DefaultWatchdog, For: core.DefaultWatchdog}
			if e.quick {
				h.Watchdog, h.For = h.Watchdog/10, h.For/10
			}
			return h.measure(ctx, e, c)
		},
		rows: []row{
			{title: "10,000 held locks with watchdog: heap bytes per lock", metric: "bytes", bar: atMost(1024)},
			{title: "… goroutines per lock", metric: "goroutines", digits: 3, bar: atMost(0.01)},
			{title: "… renewals, % of one core", metric: "cpu", digits: 2, bar: atMost(1)},
		},
	}
}

func (h *held) measure(ctx context.Context, e env, by contender) (sample, error) {
	w, err := e.start(ctx, by, job{Held: h})
	if err != nil {
		return nil, err
	}
	var f footprint
	if err := errors.Join(w.receive(&f), w.wait()); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	slower := float64(core.DefaultWatchdog) / float64(h.Watchdog)
	return sample{
		"bytes":      f.BytesPerLock,
		"goroutines": f.GoroutinesPerLock,
		"cpu":        100 * f.CPU / h.For.Seconds() / slower,
	}, nil
}

func (h *held) serve(ctx context.Context, l link) error {
	rdb := newRedis(h.Addr)
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithWatchdog(h.Watchdog))
	if err != nil {
		return err
	}
	names := make([]string, h.Locks)
	for i := range names {
		names[i] = h.Prefix + ":" + strconv.Itoa(i)
	}
	holds := make([]*core.Hold, len(names))
	// The first run creates connections, buffers and maps that stay.
	if err := errors.Join(acquireAll(ctx, locks, names, holds), releaseAll(ctx, holds)); err != nil {
		return err
	}
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	if err := acquireAll(ctx, locks, names, holds); err != nil {
		return err
	}
	f := footprint{
		BytesPerLock:      float64(heapInUse()-heap) / float64(h.Locks),
		GoroutinesPerLock: float64(runtime.NumGoroutine()-goroutines) / float64(h.Locks),
	}
	before := cpuTime()
	time.Sleep(h.For)
	f.CPU = (cpuTime() - before).Seconds()
	if err := errors.Join(releaseAll(ctx, holds), locks.Close(ctx)); err != nil {
		return err
	}
	return l.send(f)
}

func acquireAll(ctx context.Context, locks *core.Client, names []string, holds []*core.Hold) error {
	return inParallel(len(names), func(i int) (err error) {
		_, holds[i], err = locks.Lock(names[i]).Acquire(ctx)
		return err
	})
}

func releaseAll(ctx context.Context, holds []*core.Hold) error {
	return inParallel(len(holds), func(i int) error {
		err := holds[i].Release(ctx)
		holds[i] = nil
		return err
	})
}

// inParallel calls do for 0 to n-1 from 64 goroutines.
func inParallel(n int, do func(i int) error) error {
	const callers = 64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n && errs[c] == nil; i += callers {
				errs[c] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// heapInUse returns the size of the heap after garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cpuTime returns the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // fails only for a bad argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
