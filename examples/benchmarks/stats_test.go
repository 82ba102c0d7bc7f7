package main

import (
	"math"
	"os"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, test := range []struct {
		values []float64
		p      float64
		want   float64
	}{
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{[]float64{7}, 0.01, 7},
	} {
		if got := quantile(test.values, test.p); got != test.want {
			t.Errorf("quantile of %d values at %v = %v, want %v", len(test.values), test.p, got, test.want)
		}
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing = %v, want NaN", got)
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		turns []int64
		want  float64
	}{
		{"all equal", []int64{7, 7, 7, 7}, 1},
		{"one has all", []int64{12, 0, 0, 0}, 0.25},
		{"half has all", []int64{5, 5, 0, 0}, 0.5},
		{"all zero", []int64{0, 0}, 0},
	} {
		if got := jain(test.turns); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestPairedRatio_IgnoresDriftBetweenRounds(t *testing.T) {
	t.Parallel()
	if got := pairedRatio([]float64{2, 4, 20}, []float64{1, 2, 10}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
}

func TestTable_ComparesWithTheFastestPeer(t *testing.T) {
	t.Parallel()
	values := map[string][]float64{
		interlockName: {30}, "redsync": {10}, "bsm/redislock": {25}, "rueidislock": {20},
	}
	var out strings.Builder
	table := table{out: &out, columns: allContenders()}
	table.add([]row{
		{title: "rate", metric: "rate", bar: ratioToFastestPeer(1.2)},
		{title: "rate", metric: "rate", bar: ratioToFastestPeer(1.3)},
	}, results{"rate": values})
	want := "| rate | 30 |  |  |  |  | 10 | 25 | 20 | 1.20 × bsm/redislock | ≥ 1.2 × | yes |\n" +
		"| rate | 30 |  |  |  |  | 10 | 25 | 20 | 1.20 × bsm/redislock | ≥ 1.3 × | **no** |\n"
	if out.String() != want || table.missed != 1 {
		t.Errorf("got %d missed bars and\n%swant 1 missed bar and\n%s", table.missed, &out, want)
	}
}

// The latency is compared with the latency of the contender with the highest throughput, not with the lowest
// latency.
func TestTable_ComparesWithTheBestOfFloorsAndPeers(t *testing.T) {
	t.Parallel()
	r := results{
		"rate": {interlockName: {30}, bareFloor: {10}, halfDuplexFloor: {40}, "rueidislock": {20}},
		"p99":  {interlockName: {6}, bareFloor: {1}, halfDuplexFloor: {4}, "rueidislock": {2}},
	}
	var out strings.Builder
	table := table{out: &out, columns: allContenders()}
	table.add([]row{
		{title: "rate", metric: "rate", bar: ratioToBest(0.75)},
		{title: "p99", metric: "p99", bar: ratioToPaceOfBest(1.2)},
	}, r)
	want := "| rate | 30 | 10 | 40 |  |  |  |  | 20 | 0.75 × half duplex | ≥ 0.75 × | yes |\n" +
		"| p99 | 6 | 1 | 4 |  |  |  |  | 2 | 1.50 × half duplex | ≤ 1.2 × | **no** |\n"
	if out.String() != want || table.missed != 1 {
		t.Errorf("got %d missed bars and\n%swant 1 missed bar and\n%s", table.missed, &out, want)
	}
}

func TestGuard_SeesTwoHolders(t *testing.T) {
	t.Parallel()
	path, err := newGuardFile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	g, err := openGuard(path)
	if err != nil {
		t.Fatal(err)
	}
	g.enter()
	g.leave()
	if n := g.violations(); n != 0 {
		t.Errorf("one holder after the other: %d violations", n)
	}
	g.enter()
	g.enter()
	if n := g.violations(); n != 1 {
		t.Errorf("two holders at once: %d violations, want 1", n)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}

func TestTable_ComparesWithAnotherBuild(t *testing.T) {
	t.Parallel()
	all := []scenario{wakeups(0)}
	besideBefore(all, "bench-before")
	var out strings.Builder
	table := table{out: &out, columns: columns(all)}
	table.header()
	table.add([]row{{title: "rate", metric: "rate"}}, results{"rate": {
		interlockName: {30, 60, 40}, beforeName: {20, 30, 20}, "redsync": {10},
	}})
	want := "| measured (medians) | Interlock | before | redsync | bsm/redislock | rueidislock | ratio | bar | met | ÷ before |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n" +
		"| rate | 40 | 20 | 10 |  |  |  |  |  | 2.00 |\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestContender_InWorker(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of   contender
		want string
	}{
		{contender{name: "redsync"}, "redsync"},
		{contender{name: beforeName, binary: "bench-before"}, interlockName},
	} {
		if got := test.of.inWorker(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.of.name, got, test.want)
		}
	}
}

// A mutex works in one process only.
func TestOneProcessForMutex(t *testing.T) {
	t.Parallel()
	sides := oneProcessForMutex(4, 8)
	if s := sides(mutex())[0]; s.processes != 1 || s.callers != 32 {
		t.Errorf("the mutex has %d processes of %d callers, want one of 32", s.processes, s.callers)
	}
	if s := sides(interlock())[0]; s.processes != 4 || s.callers != 8 {
		t.Errorf("Interlock has %d processes of %d callers, want 4 of 8", s.processes, s.callers)
	}
}
