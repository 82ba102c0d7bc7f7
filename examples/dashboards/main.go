// Dashboards shows what a Grafana dashboard, Prometheus rules and the live page tell about
// locks, on a shop that has every trouble they are for:
//
//	go -C examples run ./dashboards
//
// It starts a Redis, three pods of a shop with customers, a Prometheus that scrapes them, and
// prints what to open. Every twenty seconds one trouble comes: a lock is lost, a deadlock, a bad
// rule file, a Redis that stops. Ctrl-C ends it all.
//
// dashboard.json is for Grafana (package board makes it), rules.yml for Prometheus, and
// RUNBOOKS.md for whom the alerts wake.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// rules are the recording rules and alerts.
//
//go:embed rules.yml
var rules string

func main() { os.Exit(exitCode()) }

func exitCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		return 1
	}
	return 0
}

type settings struct {
	redis      string
	prometheus string
	calm       bool
	picture    string
	ends       time.Duration
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("dashboards", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis, such as redis://localhost:6379; without it one is started. It is not stopped as a trouble")
	flags.StringVar(&s.prometheus, "prometheus", "", "`path` of the program; without it prometheus on PATH")
	flags.BoolVar(&s.calm, "calm", false, "only the customers, no other troubles")
	flags.DurationVar(&s.ends, "for", 0, "end after so long; 0: with Ctrl-C")
	flags.StringVar(&s.picture, "picture", "", "draw the dashboard to an SVG `file` at the end")
	return s, flags.Parse(args)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if s.ends > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.ends)
		defer cancel()
	}
	d, err := start(ctx, &s, out)
	if err != nil {
		return err
	}
	defer d.close()
	d.introduce()
	// The picture shows the shop at work: customers and troubles end after it.
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { d.live(work, s.calm) })
	<-ctx.Done()
	if s.picture != "" {
		err = d.draw(s.picture)
	}
	end()
	running.Wait()
	return err
}
