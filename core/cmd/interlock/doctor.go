package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// doctor is the command doctor.
type doctor struct {
	target

	kinds []string
}

func newDoctor() *command {
	d := &doctor{}
	return &command{
		name:     "doctor",
		synopsis: "[flags]",
		summary:  "try what locks need from a Redis, and say what to change",
		text: `Takes probe locks under the prefix, and reports in each line what works, what fails, and
which line of ACL or configuration to write. It acquires, keeps another client out,
re-enters, renews, hands off, notifies, releases, and takes several keys at once. It checks
the role of the server and its maxmemory-policy, and looks for clients that do not receive
the messages. Give it the user, the prefix and the kinds of the service. It takes some
seconds, writes keys that begin with PREFIXinterlock_preflight:, and deletes them. Exit
code 1 if something fails. A program can call Client.Preflight of package core instead, also
with a name mapper.

` + urlText + `

Examples:
  interlock doctor --redis redis://shop:secret@localhost:6379 --prefix shop:
  interlock doctor --redis redis://node:6379 --cluster --kinds reentrant,fair,semaphore
  echo "$REDIS_URL" | interlock doctor --redis -`,
		args:  noArguments,
		flags: d.flags,
		run:   d.run,
	}
}

func (d *doctor) flags(set *pflag.FlagSet) {
	d.clientFlags(set)
	set.StringSliceVar(&d.kinds, "kinds", []string{string(core.KindReentrant)}, "`kinds` of lock to try, with commas: reentrant, fenced, spin, read, write, fair,\nsemaphore, plain_semaphore, latch")
}

func (d *doctor) run(ctx context.Context, std streams, _ []string) error {
	var kinds []core.Kind
	for _, name := range d.kinds {
		kinds = append(kinds, core.Kind(name))
	}
	return d.open(ctx, std.in, func(locks *core.Client) error {
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt) // Preflight deletes its probes when Ctrl-C stops the command
		defer stop()
		report, err := locks.Preflight(ctx, kinds...)
		switch {
		case errors.Is(err, core.ErrInvalid):
			return usagef("--kinds: %v", err)
		case err != nil:
			return err
		}
		fmt.Fprint(std.out, report)
		if report.Err() != nil {
			return errProblems
		}
		return nil
	})
}

// wire is the command wire.
type wire struct{ target }

func newWire() *command {
	w := &wire{}
	return &command{
		name:     "wire",
		synopsis: "[flags]",
		summary:  "show how Redisson shares the locks of a Redis",
		text: `Shows the configuration with which Redisson shares the locks of a lock client with these
settings, and warns of waiters in the Redis that do not receive the client's messages. It
sees only the callers that wait while it runs. Exit code 1 if there are warnings. A program
can call Client.Wire of package core instead, also with a name mapper.

` + urlText + `

Examples:
  interlock wire --redis redis://localhost:6379/2 --prefix shop:
  interlock wire --redis 'redis://sentinel:26379/0?master_name=main'
  interlock wire --redis redis://node:6379 --cluster --pubsub classic
  echo "$REDIS_URL" | interlock wire --redis -`,
		args:  noArguments,
		flags: w.clientFlags,
		run:   w.run,
	}
}

func (w *wire) run(ctx context.Context, std streams, _ []string) error {
	return w.locks(ctx, std.in, func(locks *core.Client) error {
		found, err := locks.Wire(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(std.out, found)
		for _, text := range found.Warnings {
			fmt.Fprintln(std.out, "warning:", text)
		}
		if len(found.Warnings) > 0 {
			return errProblems
		}
		return nil
	})
}
