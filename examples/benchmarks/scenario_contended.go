package main

import (
	"fmt"
	"time"
)

// contended is one key that all callers of a process want.
func contended(name string, callers int, held time.Duration) scenario {
	s := matched(name, fmt.Sprintf("%d callers, one key held %s", callers, held), match{
		sides: alike(1, callers), held: held, lasting: 2 * time.Second,
	})
	atLeastPeer := map[time.Duration]float64{0: 1.4, time.Millisecond: 1.05}[held]
	return s.bars(map[string]*bar{
		"rate": ratioToFastestPeer(atLeastPeer), "jain": atLeast(0.98), "executed": atMost(6),
	})
}

// oneKey is the same, held for no time, so far away from Redis.
func oneKey(roundTrip time.Duration) scenario {
	const callers = 32
	s := matched("onekey-"+distance(roundTrip), fmt.Sprintf("%s away, %d callers, one key", distance(roundTrip), callers), match{
		sides: alike(1, callers), lasting: 2 * time.Second,
	})
	s.roundTrip, s.long = roundTrip, roundTrip != time.Millisecond
	return s.bars(map[string]*bar{
		"rate": ratioToBest(1), "p99": ratioToPaceOfBest(1.2), "jain": atLeast(0.98),
	})
}

// crossProcess is one key that callers of several processes want, for no time.
func crossProcess() scenario {
	s := matched("processes-0", "4 processes × 8 callers, one key held 0s", match{
		sides: alike(4, 8), lasting: 2 * time.Second,
	})
	return s.bars(map[string]*bar{"jain": atLeast(0.9)})
}

func crowd() scenario {
	s := matched("crowd", "4 processes × 500 callers, one key held 100µs", match{
		sides: alike(4, 500), held: 100 * time.Microsecond, lasting: 2 * time.Second,
	})
	return s.bars(map[string]*bar{"rate": ratioToFastestPeer(1.3)})
}

// matched is a match between the callers of each library.
func matched(name, who string, m match) scenario {
	return scenario{
		name:       name,
		contenders: libraries(),
		measure:    m.measure,
		rows: []row{
			{title: who + ": locks/s", metric: "rate"},
			{title: "… Jain's index of fairness", metric: "jain", digits: 3},
			{title: "… wait, p50, ms", metric: "p50", digits: 1},
			{title: "… wait, p99, ms", metric: "p99", digits: 1},
			{title: "… longest wait, ms", metric: "longest"},
			{title: "… commands sent to Redis per lock", metric: "sent", digits: 1},
			{title: "… commands executed per lock, in scripts too", metric: "executed", digits: 1},
			{title: "… failed, or still waiting 10 s after the end", metric: "failures"},
			{title: "… two holders at once", metric: "violations", bar: atMost(0)},
		},
	}
}

// bars puts bars on rows, by metric.
func (s scenario) bars(by map[string]*bar) scenario {
	for i := range s.rows {
		if b := by[s.rows[i].metric]; b != nil {
			s.rows[i].bar = b
		}
	}
	return s
}
