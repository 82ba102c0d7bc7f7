package interop_test

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// compared lists the kinds that are compared with Redisson's.
var compared = []string{
	"reentrant", "fenced", "spin", "fair", "write", "read", "read beside write", "multi",
	"permit semaphore", "semaphore", "latch", "redlock",
}

// situation is a number of callers in a number of processes.
type situation struct {
	name                     string
	processes, callers, keys int
}

var situations = []situation{
	{name: "uncontended", processes: 1, callers: 1, keys: 16},
	{name: "32 callers", processes: 1, callers: 32, keys: 1},
	{name: "4 processes x 8", processes: 4, callers: 8, keys: 1},
}

const (
	loadTime    = time.Second
	warmUpTime  = 3 * time.Second // the warm-up of the Java processes with each of some kinds
	permits     = 8
	redlockSize = 3
)

// BenchmarkBesideRedisson compares each kind with Redisson's. In a round (-benchtime 3x: three) one side works
// for a second, then the other. At the end, it prints a table. With -short it only checks that everything
// runs.
func BenchmarkBesideRedisson(b *testing.B) {
	classPath := interop.Build(b, usualVersion)
	sides := newLoaders(b, classPath)
	var rows []rivalry
	for _, kind := range compared {
		for _, s := range situations {
			b.Run(kind+"/"+s.name, func(b *testing.B) {
				r := rivalry{kind: kind, situation: s}
				sides.measure(b, &r, sides.duration/2) // fills caches, opens connections, runs compilers
				r.rounds = nil
				for b.Loop() {
					sides.measure(b, &r, sides.duration)
				}
				r.report(b)
				rows = append(rows, r)
			})
		}
	}
	printTable(os.Stdout, rows)
}

// loaders holds the processes of both sides, which run for the whole comparison. One side idles while the other
// works.
type loaders struct {
	raw      *redisserver.Server // for all kinds except the redlock
	goes     []loader
	javas    []loader
	duration time.Duration
	sequence int
}

func newLoaders(b *testing.B, classPath string) *loaders {
	b.Helper()
	p := &loaders{duration: loadTime}
	warmUp := warmUpTime
	if testing.Short() {
		p.duration, warmUp = loadTime/10, loadTime/10
	}
	addrs := make([]string, redlockSize)
	for i := range addrs {
		p.raw = redisserver.Start(b)
		addrs[len(addrs)-1-i] = p.raw.Addr()
	}
	for range 4 {
		p.goes = append(p.goes, newGoLoader(b, addrs))
		p.javas = append(p.javas, newJavaLoader(b, classPath, addrs))
	}
	for _, kind := range []string{"read", "reentrant", "semaphore", "fair"} {
		p.run(p.javas, kind, situations[2], warmUp)
	}
	return p
}

// run lets some processes of one side work for a time.
func (p *loaders) run(side []loader, kind string, s situation, duration time.Duration) outcome {
	l := p.load(kind, s, duration)
	var finish []func() tally
	for _, one := range side[:s.processes] {
		finish = append(finish, one.start(l))
	}
	all := tally{Waits: make(map[int64]int64)}
	for _, f := range finish {
		all.add(f())
	}
	return all.outcome(duration)
}

// load returns the next load, with unused keys.
func (p *loaders) load(kind string, s situation, duration time.Duration) load {
	p.sequence++
	from := time.Now().Add(100 * time.Millisecond)
	return load{
		Kind: kind, Key: fmt.Sprintf("beside:%d", p.sequence), Keys: s.keys,
		Callers: s.callers, Parties: s.processes * s.callers, Permits: permits,
		From: from.UnixMilli(), To: from.Add(duration).UnixMilli(),
	}
}

func (t *tally) outcome(duration time.Duration) outcome {
	return outcome{rate: float64(t.Turns) / duration.Seconds(), p99: t.p99()}
}

// p99 returns the 99th percentile of the waits, in ms.
func (t *tally) p99() float64 {
	var all, seen int64
	for _, n := range t.Waits {
		all += n
	}
	for _, wait := range slices.Sorted(maps.Keys(t.Waits)) {
		if seen += t.Waits[wait]; float64(seen) >= 0.99*float64(all) {
			return float64(wait) / 1000
		}
	}
	return math.NaN()
}

// outcome is the result of one side in a round.
type outcome struct{ rate, p99 float64 }

// round holds the outcomes of both sides.
type round struct{ ours, theirs outcome }

// rivalry is a kind in a situation.
type rivalry struct {
	kind      string
	situation situation
	rounds    []round
}

// measure lets one side work, then the other. Redisson starts every other round.
func (p *loaders) measure(b *testing.B, r *rivalry, duration time.Duration) {
	b.Helper()
	var one round
	turns := []func(){
		func() { one.ours = p.run(p.goes, r.kind, r.situation, duration) },
		func() { one.theirs = p.run(p.javas, r.kind, r.situation, duration) },
	}
	if len(r.rounds)%2 == 1 {
		slices.Reverse(turns)
	}
	for _, side := range turns {
		side()
	}
	r.rounds = append(r.rounds, one)
}

// median returns the median of a value over the rounds.
func (r *rivalry) median(of func(round) float64) float64 {
	var all []float64
	for _, one := range r.rounds {
		all = append(all, of(one))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (r *rivalry) ratio() float64 {
	return r.median(func(one round) float64 { return one.ours.rate / one.theirs.rate })
}

func (r *rivalry) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // no ns/op, because the length of a round is fixed
	b.ReportMetric(r.ratio(), "ratio")
	for i, one := range r.rounds {
		b.Logf("round %d: Go %.0f turns/s, p99 %.2f ms; Redisson %.0f turns/s, p99 %.2f ms", i+1,
			one.ours.rate, one.ours.p99, one.theirs.rate, one.theirs.p99)
	}
}

func printTable(to io.Writer, rows []rivalry) {
	line := func(cells ...string) { fmt.Fprintf(to, "| %s |\n", strings.Join(cells, " | ")) }
	line("kind", "callers", "turns/s", "Redisson's", "ratio", "wait p99, ms", "Redisson's")
	line("---", "---", "---:", "---:", "---:", "---:", "---:")
	for _, r := range rows {
		line(
			r.kind, r.situation.name,
			fmt.Sprintf("%.0f", r.median(func(one round) float64 { return one.ours.rate })),
			fmt.Sprintf("%.0f", r.median(func(one round) float64 { return one.theirs.rate })),
			fmt.Sprintf("%.2f", r.ratio()),
			fmt.Sprintf("%.2f", r.median(func(one round) float64 { return one.ours.p99 })),
			fmt.Sprintf("%.2f", r.median(func(one round) float64 { return one.theirs.p99 })),
		)
	}
}
