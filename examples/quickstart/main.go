// Quickstart shows what Interlock does, on a shop that would oversell without it:
//
//	go -C examples run ./quickstart
//
// Two Gin and two gRPC instances of the shop (package shop) sell from one stock,
// with an embedded Redis or the one of -redis. Every step prints what happens and
// checks it; the exit code is 1 if anything is not as it should be.
//
// steps.go lists the steps, each in a file of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	if lock, ok := holderFromEnv(); ok {
		os.Exit(holdUntilKilled(lock)) // this process is the victim of step "killed"
	}
	os.Exit(exitCode())
}

func exitCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		return 1
	}
	return 0
}

type settings struct {
	redis string
	serve bool
	steps string
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis, such as redis://localhost:6379; without it one is embedded")
	flags.BoolVar(&s.serve, "serve", false, "keep the servers up after the steps, and print commands to try")
	flags.StringVar(&s.steps, "steps", "all", "the `names` of the steps to run, separated by commas, or none")
	return s, flags.Parse(args)
}

// run is the program: it returns nil if every step went as expected.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	settings, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	chosen, err := choose(steps(), settings.steps)
	if err != nil {
		return err
	}
	d, err := start(ctx, settings.redis, out)
	if err != nil {
		return err
	}
	defer d.close()
	d.introduce()
	err = d.perform(ctx, chosen)
	if settings.serve && ctx.Err() == nil {
		d.serve(ctx)
	}
	return err
}
