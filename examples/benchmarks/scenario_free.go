package main

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// alone is one caller on keys that nobody else wants.
func alone() scenario {
	return scenario{
		name:       "alone",
		contenders: append([]contender{plainFloor()}, libraries()...),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			perSecond, err := uncontended(ctx, e, c, 1)
			return sample{"time": 1e6 / perSecond}, err
		},
		rows: []row{{
			title: "1 caller, free keys: µs to lock and unlock", metric: "time", digits: 1,
			bar: ratioAtMost(plainFloor().name, 1.15),
		}},
	}
}

// parallel is 128 callers, each on keys that nobody else wants. The floor goes
// through go-redis's auto-pipelining, as Interlock does.
func parallel() scenario {
	return scenario{
		name:       "parallel",
		contenders: append([]contender{pipelinedFloor()}, libraries()...),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			perSecond, err := uncontended(ctx, e, c, 128)
			return sample{"rate": perSecond}, err
		},
		rows: []row{{
			title: "128 callers, free keys: locks/s", metric: "rate",
			bar: ratioAtLeast(pipelinedFloor().name, 0.9),
		}},
	}
}

// uncontended counts locks per second.
func uncontended(ctx context.Context, e env, c contender, callers int) (float64, error) {
	locker, err := c.open(e.addr, 1)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	if err := warmUp(ctx, locker, e.key+":warm"); err != nil {
		return 0, err
	}
	var total atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(e.lasting(time.Second))
	for i := range callers {
		wg.Go(func() {
			n, err := lockUntil(ctx, locker, e.key+":"+strconv.Itoa(i)+":", end)
			total.Add(n)
			if err != nil {
				failure.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(total.Load()) / time.Since(start).Seconds(), nil
}

// lockUntil goes round 16 keys, so that none is a stranger to Redis or to the
// library, and none is always the same.
func lockUntil(ctx context.Context, locker Locker, prefix string, end time.Time) (int64, error) {
	keys := make([]string, 16)
	for i := range keys {
		keys[i] = prefix + strconv.Itoa(i)
	}
	var n int64
	for ; time.Now().Before(end); n++ {
		unlock, err := locker.Lock(ctx, keys[n%16])
		if err != nil {
			return n, err
		}
		if err := unlock(ctx); err != nil {
			return n, err
		}
	}
	return n, nil
}
