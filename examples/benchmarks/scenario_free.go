package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// alone returns a scenario with one caller on keys that no other caller wants.
func alone() scenario {
	return scenario{
		name:       "alone",
		contenders: append(findAll(bareFloor), libraries()...),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			s, err := uncontended(ctx, e, c, 1)
			return sample{"time": 1e6 / s["rate"]}, err
		},
		rows: []row{{
			title: "1 caller, free keys: µs to lock and unlock", metric: "time", digits: 1,
			bar: ratioAtMost(bareFloor, 1.15),
		}},
	}
}

// parallel returns a scenario with 128 callers, each on keys that no other caller wants. The floor uses the
// auto-pipelining of go-redis, like Interlock.
func parallel() scenario {
	return scenario{
		name:       "parallel",
		contenders: append(findAll(halfDuplexFloor), libraries()...),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			return uncontended(ctx, e, c, 128)
		},
		rows: []row{{
			title: "128 callers, free keys: locks/s", metric: "rate",
			bar: ratioAtLeast(halfDuplexFloor, 0.9),
		}},
	}
}

// free returns a scenario with callers on keys that no other caller wants, at a distance from
// Redis.
func free(roundTrip time.Duration, callers int) scenario {
	return scenario{
		name:       fmt.Sprintf("free-%s-%d", distance(roundTrip), callers),
		roundTrip:  roundTrip,
		long:       roundTrip != time.Millisecond || callers != 8 && callers != 128,
		contenders: slices.Concat([]contender{interlock()}, rivals()),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			return uncontended(ctx, e, c, callers)
		},
		rows: freeRows(roundTrip, callers),
	}
}

func freeRows(roundTrip time.Duration, callers int) []row {
	title := fmt.Sprintf("%s away, %d callers, free keys: locks/s", distance(roundTrip), callers)
	rate := row{title: title, metric: "rate"}
	half := row{title: "… p50 of lock and unlock, ms", metric: "p50", digits: 2}
	most := row{title: "… p99, ms", metric: "p99", digits: 2}
	cpu := row{title: "… CPU of the process per lock and unlock, µs", metric: "cpu", digits: 1}
	if roundTrip > 0 {
		rate.bar, most.bar = ratioToBest(rateShare(callers)), ratioToPaceOfBest(1.2)
		return []row{rate, half, most, cpu}
	}
	switch callers {
	case 8:
		rate.bar = ratioToBest(1)
	case 128:
		rate.bar = ratioAtLeast(halfDuplexFloor, 0.95)
		peer := row{title: "… beside rueidislock", metric: "rate", bar: ratioAtLeast("rueidislock", 1.2)}
		return []row{rate, peer, half, most, cpu}
	case 1000:
		rate.bar = ratioAtLeast(fullDuplexFloor, 0.9)
	}
	return []row{rate, half, most, cpu}
}

// rateShare returns the share of the best rate that Interlock must reach. A single caller waits for two round
// trips with every library, so noise decides which library is the best.
func rateShare(callers int) float64 {
	if callers == 1 {
		return 0.95
	}
	return 1
}

// distance returns a name for a round trip.
func distance(roundTrip time.Duration) string { return fmt.Sprintf("%gms", ms(roundTrip)) }

func uncontended(ctx context.Context, e env, c contender, callers int) (sample, error) {
	l := &load{
		Contender: c.inWorker(), Addr: e.addr, Prefix: e.key, Callers: callers,
		Warm: e.duration(time.Second) / 4, For: e.duration(time.Second),
	}
	p, err := l.measure(ctx, e, c)
	return sample{"rate": p.Rate, "p50": p.P50, "p99": p.P99, "cpu": p.CPU}, err
}
