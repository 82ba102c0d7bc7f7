// Quickstart demonstrates Interlock on a shop that oversells without it:
//
//	go -C examples run ./quickstart
//
// Two Gin and two gRPC instances of the shop (package shop) sell from one stock, with an
// embedded Redis or the Redis of -redis. Every step prints what happens and checks it.
// The exit code is 1 if a result is wrong.
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

func main() {
	if lock, ok := holderFromEnv(); ok {
		os.Exit(holdUntilKilled(lock)) // this process is the holder that step "killed" kills
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
	redis   string
	serve   bool
	steps   string
	picture string
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379. Default: an embedded one")
	flags.BoolVar(&s.serve, "serve", false, "keep the servers running after the steps, and print commands to try")
	flags.StringVar(&s.steps, "steps", "all", "the `names` of the steps to run, separated by commas, or none")
	flags.StringVar(&s.picture, "picture", "", "a `file` for a picture (SVG) of the table of results")
	return s, flags.Parse(args)
}

// run runs the program. It returns nil if every step succeeded.
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
	results, err := d.perform(ctx, chosen)
	err = errors.Join(err, savePicture(settings.picture, results))
	if settings.serve && ctx.Err() == nil {
		d.serve(ctx)
	}
	return err
}
