package main

import (
	"fmt"
	"slices"
	"time"
)

// turns returns scenarios in which callers of one library, in several processes, want one key and
// hold it for 1 ms.
func turns() []scenario {
	all := []scenario{between(4, 2), between(2, 16), between(4, 500), lone()}
	all[0].long, all[1].long, all[2].long = true, true, true
	return all
}

func between(processes, callers int) scenario {
	m := match{sides: oneSide(processes, callers), held: time.Millisecond, duration: 3 * time.Second}
	crowded := processes*callers > 1000 // a queue of more than 2 s
	if crowded {
		m.duration = 8 * time.Second
	}
	who := fmt.Sprintf("%d processes × %d callers, one key held 1ms", processes, callers)
	s := queueScenario(fmt.Sprintf("turns-%dx%d", processes, callers), who, m)
	if crowded {
		return s
	}
	return s.bars(map[string]*bar{
		"rate": ratioToFastestPeer(1.05), "jain": atLeast(0.97), "queues": atMost(3), "executed": atMost(6.5),
	})
}

// queueScenario returns a scenario with a match whose waits are compared with the length of the queue.
func queueScenario(name, who string, m match) scenario {
	s := matchScenario(name, who, m)
	at := slices.IndexFunc(s.rows, func(r row) bool { return r.metric == "longest" })
	s.rows = slices.Insert(
		s.rows, at,
		row{title: "… length of the queue, ms", metric: "queue", digits: 1},
		row{title: "… p99 of the wait, in queues", metric: "queues", digits: 2},
		row{title: "… longest time without a turn of a process, ms", metric: "drought"},
	)
	return s
}

// lone returns a scenario with one caller in a separate process and a hundred callers in another.
func lone() scenario {
	m := match{
		sides: func(c contender) []side {
			return []side{{c, 1, 1}, {c, 1, 100}}
		},
		held: time.Millisecond, duration: 3 * time.Second,
	}
	return scenario{
		name:       "lone",
		contenders: libraries(),
		measure:    m.measure,
		rows: []row{
			{title: "1 caller beside a process of 100, one key held 1ms: its wait, p99, ms", metric: "first p99", digits: 1, bar: atMost(60)},
			{title: "… its longest wait, ms", metric: "first longest"},
			{title: "… its share of the turns, %", metric: "first share", digits: 1},
			{title: "… locks/s of all", metric: "rate"},
			{title: "… wait of all, p99, ms", metric: "p99", digits: 1},
			{title: "… two holders at once", metric: "violations", bar: atMost(0)},
		},
	}
}

// besideRedisson returns scenarios in which 8 threads of Redisson and some callers of Interlock want
// the same key.
func besideRedisson() []scenario {
	var all []scenario
	for _, ours := range []int{8, 1} {
		for _, held := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
			all = append(all, beside(ours, 0, held))
		}
	}
	for _, held := range []time.Duration{0, time.Millisecond} {
		all = append(all, beside(8, time.Millisecond, held))
	}
	return all
}

func beside(ours int, roundTrip, held time.Duration) scenario {
	m := match{
		sides: func(c contender) []side {
			return []side{{javaLike(), 1, 8}, {c, 1, ours}}
		},
		held: held, duration: 3 * time.Second,
	}
	who := fmt.Sprintf("8 threads of Redisson beside %d callers, one key held %s", ours, held)
	if roundTrip > 0 {
		who = fmt.Sprintf("%s away, %s", distance(roundTrip), who)
	}
	return scenario{
		name:       fmt.Sprintf("redisson-%d-%s-%s", ours, distance(roundTrip), distance(held)),
		roundTrip:  roundTrip,
		long:       roundTrip > 0 || held != time.Millisecond,
		contenders: []contender{interlock()},
		measure:    m.measure,
		rows: []row{
			{title: who + ": their share of the turns, %", metric: "first share", digits: 1, bar: atLeast(35)},
			{title: "… their longest wait, ms", metric: "first longest", bar: atMost(300)},
			{title: "… their wait, p99, ms", metric: "first p99"},
			{title: "… longest wait of all, ms", metric: "longest"},
			{title: "… locks/s of all", metric: "rate"},
			{title: "… two holders at once", metric: "violations", bar: atMost(0)},
		},
	}
}
