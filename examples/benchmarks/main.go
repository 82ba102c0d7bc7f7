// Command benchmarks compares Interlock with the floors (two EVALSHA calls) and
// with other lock libraries on one Redis, and prints a Markdown table. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

type flags struct {
	redis    string
	rounds   int
	quick    bool
	check    bool
	only     []string
	before   string
	profiles string
	proxy    time.Duration
}

func run(ctx context.Context) error {
	if os.Getenv(workerEnv) != "" {
		return runWorker(ctx)
	}
	f, err := parseFlags()
	if err != nil {
		return err
	}
	if f.redis == "" {
		addr, stop, err := startRedis(ctx)
		if err != nil {
			return err
		}
		defer stop()
		f.redis = addr
	}
	if f.proxy > 0 {
		return serveProxy(f.redis, f.proxy)
	}
	return f.compare(ctx)
}

func parseFlags() (flags, error) {
	var f flags
	var only string
	flag.StringVar(&f.redis, "redis", "", "host:port of a Redis to use (default: start redis-server on a free port)")
	flag.IntVar(&f.rounds, "rounds", 3, "rounds to take medians of")
	flag.BoolVar(&f.quick, "quick", false, "one short round that only checks that everything runs")
	flag.BoolVar(&f.check, "check", false, "exit with an error if a bar is missed")
	flag.StringVar(&only, "only", "", "scenarios to run, comma-separated: their names, or the beginning of names up to a dash: "+strings.Join(names(scenarios()), ","))
	flag.StringVar(&f.before, "before", "", "another build of this program, whose Interlock is measured as the contender \""+beforeName+"\"")
	flag.StringVar(&f.profiles, "cpuprofile", "", "existing folder to which each worker process writes a CPU profile")
	flag.DurationVar(&f.proxy, "proxy", 0, "do not measure: run a proxy to -redis with this round trip, print its address, and exit when the standard input is closed")
	flag.Parse()
	if f.quick {
		f.rounds = 1
	}
	if f.rounds < 1 || flag.NArg() > 0 {
		return f, fmt.Errorf("want -rounds of at least 1 and no arguments, got %d and %q", f.rounds, flag.Args())
	}
	for _, path := range []*string{&f.before, &f.profiles} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return f, err
		}
		if _, err := os.Stat(*path); err != nil {
			return f, err
		}
	}
	if only != "" {
		f.only = strings.Split(only, ",")
	}
	for _, name := range f.only {
		if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.hasName(name) }) {
			return f, fmt.Errorf("-only %s: want some of %q", name, names(scenarios()))
		}
	}
	return f, nil
}

// selectScenarios returns the scenarios to run. With -quick, a long scenario runs only if -only names it.
func (f flags) selectScenarios() []scenario {
	all := slices.DeleteFunc(scenarios(), func(s scenario) bool {
		if len(f.only) == 0 {
			return f.quick && s.long
		}
		return !slices.ContainsFunc(f.only, s.hasName)
	})
	if f.before != "" {
		besideBefore(all, f.before)
	}
	return all
}

// hasName reports whether name is the name of the scenario or its part before a dash.
func (s scenario) hasName(name string) bool {
	return s.name == name || strings.HasPrefix(s.name, name+"-")
}

func names(all []scenario) []string {
	list := make([]string, len(all))
	for i, s := range all {
		list[i] = s.name
	}
	return list
}

// compare runs the scenarios and prints the rows of each after it has run.
func (f flags) compare(ctx context.Context) error {
	wanted := f.selectScenarios()
	var distances []time.Duration
	for _, s := range wanted {
		distances = append(distances, s.roundTrip)
	}
	net, err := openNetwork(f.redis, distances)
	if err != nil {
		return err
	}
	defer func() {
		if counts := net.close(); counts.parcels > 0 {
			fmt.Printf("\n%s\n", counts)
		}
	}()
	measured, err := net.describeRoundTrips(ctx)
	if err != nil {
		return err
	}
	fmt.Println(measured)
	missed, failed := f.fill(ctx, os.Stdout, net, wanted)
	if f.check && missed > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d bars missed", missed))
	}
	return failed
}

func (f flags) fill(ctx context.Context, out io.Writer, net *network, wanted []scenario) (missed int, failed error) {
	t := table{out: out, columns: columns(wanted)}
	t.header()
	for _, s := range wanted {
		e := env{addr: net.addrs[s.roundTrip], redis: f.redis, quick: f.quick, profiles: f.profiles}
		r, err := s.run(ctx, e, f.rounds)
		failed = errors.Join(failed, err)
		if err == nil {
			t.add(s.rows, r)
		}
	}
	return t.missed, failed
}
