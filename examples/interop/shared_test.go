package interop_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// BenchmarkSharedWithRedisson lets 8 callers of Go and 8 threads of Redisson compete for a lock without work under it, on
// loopback and 1 ms away. It reports medians over the rounds.
func BenchmarkSharedWithRedisson(b *testing.B) {
	classPath := interop.Build(b, usualVersion)
	for _, roundTrip := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprintf("%s away", roundTrip), func(b *testing.B) {
			addrs := []string{farAway(b, redisserver.Start(b).Addr(), roundTrip)}
			p := &loaders{goes: []loader{newGoLoader(b, addrs)}, javas: []loader{newJavaLoader(b, classPath, addrs)}, duration: 3 * loadTime}
			warmUp := 3 * warmUpTime
			if testing.Short() {
				p.duration, warmUp = loadTime/10, loadTime/10
			}
			p.run(p.javas, "reentrant", sharing, warmUp)
			r := rivalry{kind: "reentrant", situation: sharing}
			for b.Loop() {
				r.rounds = append(r.rounds, p.share())
			}
			r.report(b)
			b.ReportMetric(r.median(round.share), "%theirs")
			b.ReportMetric(r.median(round.total), "turns/s")
			b.ReportMetric(r.median(func(one round) float64 { return one.theirs.p99 }), "ms:p99-theirs")
		})
	}
}

// sharing holds the callers of one side.
var sharing = situation{name: "8 callers", processes: 1, callers: 8, keys: 1}

// share lets both sides compete for the same key at the same time.
func (p *loaders) share() round {
	l := p.load("reentrant", sharing, p.duration)
	ours, theirs := p.goes[0].start(l), p.javas[0].start(l)
	our, their := ours(), theirs()
	return round{ours: our.outcome(p.duration), theirs: their.outcome(p.duration)}
}

func (one round) total() float64 { return one.ours.rate + one.theirs.rate }

// share returns Redisson's share of the turns in percent.
func (one round) share() float64 { return 100 * one.theirs.rate / one.total() }

// farAway returns an address at which Redis has a given round trip. It starts the proxy of the benchmarks in another
// process, so that Go and Java use the same proxy.
func farAway(b *testing.B, addr string, roundTrip time.Duration) string {
	b.Helper()
	if roundTrip == 0 {
		return addr
	}
	program := b.TempDir() + "/benchmarks"
	build := exec.CommandContext(b.Context(), "go", "build", "-C", "../benchmarks", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the benchmarks: %v\n%s", err, out)
	}
	proxy := exec.CommandContext(b.Context(), program, "-redis", addr, "-proxy", roundTrip.String())
	proxy.Stderr = os.Stderr
	in, err := proxy.StdinPipe()
	must(b, err)
	out, err := proxy.StdoutPipe()
	must(b, err)
	must(b, proxy.Start())
	b.Cleanup(func() {
		_ = in.Close() // the proxy exits when its input is closed
		_ = proxy.Wait()
	})
	far, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)
	return strings.TrimSpace(far)
}
