// Cron is a service whose instances all have the same timer. Its job runs once for each
// tick. A rule file, locks.yaml, declares the lock of the job:
//
//	go -C examples run ./adapters/cron
//
// The program starts several instances in one process, each with separate clients; a real
// instance is a process. It embeds a Redis; -redis uses an existing one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

type settings struct {
	redis, rules     string
	instances, ticks int
	every            time.Duration
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("cron", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379. Default: an embedded one")
	flags.StringVar(&s.rules, "rules", "adapters/cron/locks.yaml", "the rule `file`")
	flags.IntVar(&s.instances, "instances", 3, "number of `instances`")
	flags.IntVar(&s.ticks, "ticks", 4, "number of `ticks` until the end")
	flags.DurationVar(&s.every, "every", 500*time.Millisecond, "`time` between ticks")
	return s, flags.Parse(args)
}

// run runs the program. It returns nil if the job ran once for each tick.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	url := s.redis
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return errors.New("-redis: write redis://[user:password@]host:port/db")
	}
	j := &journal{out: out, runs: map[string]int{}}
	if err := s.runAll(ctx, options, j); err != nil {
		return err
	}
	return j.verdict(s.ticks)
}

// runAll runs all instances until each has seen all ticks.
func (s *settings) runAll(ctx context.Context, options *redis.Options, j *journal) error {
	first := time.Now().Truncate(s.every).Add(s.every)
	errs := make([]error, s.instances)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = runInstance(ctx, options, s, first, func(tick string) { j.ran(i+1, tick) })
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// journal records the instance that ran the job of each tick.
type journal struct {
	mu   sync.Mutex
	out  io.Writer
	runs map[string]int
}

func (j *journal) ran(instance int, tick string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[tick]++
	fmt.Fprintf(j.out, "tick %s: instance %d runs the job\n", tick, instance)
}

func (j *journal) verdict(ticks int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for tick, runs := range j.runs {
		if runs > 1 {
			return fmt.Errorf("tick %s: the job ran %d times, want once", tick, runs)
		}
	}
	if len(j.runs) != ticks {
		return fmt.Errorf("the job ran at %d of %d ticks", len(j.runs), ticks)
	}
	fmt.Fprintf(j.out, "%d ticks, and the job ran once at each\n", ticks)
	return nil
}
