package main

import (
	"fmt"
	"slices"
	"time"
)

// hot returns scenarios with one key that 32 callers want, in one process or in four.
func hot() []scenario {
	var all []scenario
	for _, processes := range []int{1, 4} {
		for _, roundTrip := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
			for _, held := range []time.Duration{0, time.Millisecond} {
				s := hotKey(processes, roundTrip, held)
				s.long = roundTrip != held // -quick: no work at no distance, and work at a distance
				all = append(all, s)
			}
		}
	}
	return all
}

func hotKey(processes int, roundTrip, held time.Duration) scenario {
	const callers = 32
	m := match{sides: oneProcessForMutex(processes, callers/processes), held: held, duration: 2 * time.Second}
	name, who := fmt.Sprint(callers), fmt.Sprintf("%d callers", callers)
	if processes > 1 {
		m.duration = 3 * time.Second
		name = fmt.Sprintf("%dx%d", processes, callers/processes)
		who = fmt.Sprintf("%d processes × %d callers", processes, callers/processes)
	}
	s := queueScenario(
		fmt.Sprintf("hot-%s-%s-%s", name, distance(roundTrip), distance(held)),
		fmt.Sprintf("%s away, %s, one key held %s", distance(roundTrip), who, held), m,
	)
	s.roundTrip = roundTrip
	if held > 0 {
		s.contenders = append(s.contenders, mutex())
		at := slices.IndexFunc(s.rows, func(r row) bool { return r.metric == "p50" })
		s.rows = slices.Insert(s.rows, at, row{title: "… length of a hold, ms, mean", metric: "held", digits: 3})
	}
	return s.bars(hotBars(processes, roundTrip, held))
}

// oneProcessForMutex is like oneSide, but puts all callers into one process for the mutex, which works only there.
func oneProcessForMutex(processes, callers int) func(c contender) []side {
	return func(c contender) []side {
		if c.name == mutexFloor {
			return []side{{c, 1, processes * callers}}
		}
		return oneSide(processes, callers)(c)
	}
}
