package main

import (
	"strconv"
	"time"
)

// bar is a limit that Interlock must meet.
type bar struct {
	text  string
	score func(r results, metric string) (score float64, against string)
	met   func(score float64) bool
}

func own(r results, metric string) (float64, string) { return median(r[metric][interlockName]), "" }

func atMost(limit float64) *bar {
	return &bar{text: "≤ " + number(limit), score: own, met: func(s float64) bool { return s <= limit }}
}

func atLeast(limit float64) *bar {
	return &bar{text: "≥ " + number(limit), score: own, met: func(s float64) bool { return s >= limit }}
}

// times returns a bar for the ratio to another contender.
func (b *bar) times(rival func(r results, metric string) string) *bar {
	b.text += " ×"
	b.score = func(r results, metric string) (float64, string) {
		against := rival(r, metric)
		return pairedRatio(r[metric][interlockName], r[metric][against]), against
	}
	return b
}

func ratioAtMost(reference string, limit float64) *bar { return atMost(limit).times(always(reference)) }

func ratioAtLeast(reference string, limit float64) *bar {
	return atLeast(limit).times(always(reference))
}

func always(name string) func(results, string) string {
	return func(results, string) string { return name }
}

// ratioToFastestPeer compares with the peer that has the highest median.
func ratioToFastestPeer(limit float64) *bar {
	return atLeast(limit).times(func(r results, metric string) string { return fastest(r[metric], peers()) })
}

// ratioToBest compares with the fastest of floors and peers.
func ratioToBest(limit float64) *bar {
	return atLeast(limit).times(func(r results, metric string) string { return fastest(r[metric], rivals()) })
}

// ratioToPaceOfBest compares a metric with the metric of the contender that has the highest rate.
func ratioToPaceOfBest(limit float64) *bar {
	return atMost(limit).times(func(r results, _ string) string { return fastest(r["rate"], rivals()) })
}

func rivals() []contender { return append(floors(), peers()...) }

// hotBars returns the bars of a hot key, by metric. Without work, they compare with the fastest peer;
// with work, they compare with the mutex.
func hotBars(processes int, roundTrip, held time.Duration) map[string]*bar {
	type row struct {
		processes       int
		roundTrip, held time.Duration
	}
	const msec = time.Millisecond
	by := map[string]*bar{"jain": atLeast(0.98)}
	if processes > 1 {
		by["jain"] = atLeast(0.97)
	}
	if processes > 1 && held > 0 {
		by["queues"] = atMost(3)
	}
	if roundTrip == 0 {
		by["executed"] = atMost(6)
	}
	by["rate"] = map[row]*bar{
		{1, 0, 0}:           ratioToFastestPeer(6),
		{1, 0, msec}:        ratioAtLeast(mutexFloor, 0.9),
		{1, msec, 0}:        ratioToFastestPeer(10),
		{1, msec, msec}:     ratioAtLeast(mutexFloor, 0.85),
		{1, 5 * msec, 0}:    ratioToFastestPeer(1),
		{1, 5 * msec, msec}: ratioAtLeast(mutexFloor, 0.75),
		{4, 0, 0}:           ratioToFastestPeer(5),
		{4, 0, msec}:        ratioToFastestPeer(1.05),
		{4, msec, msec}:     ratioAtLeast(mutexFloor, 0.65),
	}[row{processes, roundTrip, held}]
	return by
}

// fastest returns the contender with the highest median, among the contenders that took part.
func fastest(rates map[string][]float64, of []contender) string {
	best := ""
	for _, c := range of {
		if len(rates[c.name]) > 0 && (best == "" || median(rates[c.name]) > median(rates[best])) {
			best = c.name
		}
	}
	return best
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
