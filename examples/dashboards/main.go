// Dashboards demonstrates a Grafana dashboard, Prometheus rules and the live page on a shop that has every problem that they
// are made for:
//
//	go -C examples run ./dashboards
//
// It starts a Redis, three pods of a shop with customers, and a Prometheus that scrapes them. It prints the addresses to
// open. Every twenty seconds it causes a problem: a lost lock, a deadlock, a bad rule file, a Redis that stops. Ctrl-C stops
// the program.
//
// dashboard.json is for Grafana (package board generates it), rules.yml is for Prometheus, and RUNBOOKS.md is for the operators
// that the alerts call.
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
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379; the example does not stop it. Default: start one")
	flags.StringVar(&s.prometheus, "prometheus", "", "`path` of the program. Default: prometheus on PATH")
	flags.BoolVar(&s.calm, "calm", false, "only customers, no problems")
	flags.DurationVar(&s.ends, "for", 0, "end after this time. Default: run until Ctrl-C")
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
	// The picture shows the running shop, so customers and problems stop after it is drawn.
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
