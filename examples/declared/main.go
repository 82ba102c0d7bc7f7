// Declared is a service whose locks are declared in a rule file and in a .proto, and
// not in Go:
//
//	go -C examples run ./declared
//
// Package orders is the service; copy from it. This package calls the service, changes
// a copy of locks.yaml while it runs, and checks the results, with an embedded Redis or
// the Redis of -redis. The exit code is 1 if a result is wrong.
//
// steps.go lists the steps. Each step has a separate file.
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

func main() { os.Exit(exitCode()) }

func exitCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "declared:", err)
		return 1
	}
	return 0
}

type settings struct {
	redis string
	serve bool
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("declared", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379. Default: an embedded one")
	flags.BoolVar(&s.serve, "serve", false, "keep the service running instead of the steps, and print commands to try")
	return s, flags.Parse(args)
}

// run runs the program. It returns nil if every step succeeded.
func run(ctx context.Context, args []string, out io.Writer) error {
	settings, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	d, err := start(ctx, settings.redis, out)
	if err != nil {
		return err
	}
	defer d.close()
	d.introduce()
	if settings.serve {
		d.serve(ctx)
		return nil
	}
	d.out.hide = d.file.dir + string(os.PathSeparator)
	d.traffic = startTraffic(ctx, d.client)
	defer d.traffic.stop()
	return d.perform(ctx, steps())
}
