package main

import (
	"time"
)

func crowd() scenario {
	s := matchScenario("crowd", "4 processes × 500 callers, one key held 100µs", match{
		sides: oneSide(4, 500), held: 100 * time.Microsecond, duration: 2 * time.Second,
	})
	return s.bars(map[string]*bar{"rate": ratioToFastestPeer(1.3)})
}

// matchScenario returns a scenario with a match between the callers of each library.
func matchScenario(name, who string, m match) scenario {
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
			{title: "… CPU of Redis per lock, µs", metric: "redis", digits: 1},
			{title: "… failed, or still waiting 10 s after the end", metric: "failures"},
			{title: "… two holders at once", metric: "violations", bar: atMost(0)},
		},
	}
}

// bars adds bars to rows, by metric.
func (s scenario) bars(by map[string]*bar) scenario {
	for i := range s.rows {
		if b := by[s.rows[i].metric]; b != nil {
			s.rows[i].bar = b
		}
	}
	return s
}
