package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// wire is the command of that name.
type wire struct {
	target

	prefix string
}

func newWire() *command {
	w := &wire{}
	return &command{
		name:     "wire",
		synopsis: "[flags]",
		summary:  "what Redisson needs to share the locks of a Redis",
		text: `Asks a Redis how a lock client with these settings meets Redisson there: says how
Redisson has to be configured, and warns of those who wait for the same locks and
do not hear the client's messages. Who waits at the moment is seen, and nobody else.
Exit code 1 if there are warnings. A program has the same from Client.Wire of package
core, also with a name mapper.

` + urlText + `

Examples:
  interlock wire --redis redis://localhost:6379/2 --prefix shop:
  interlock wire --redis 'redis://sentinel:26379/0?master_name=main'
  interlock wire --redis redis://node:6379 --cluster --pubsub classic
  echo "$REDIS_URL" | interlock wire --redis -`,
		args:  noArguments,
		flags: w.flags,
		run:   w.run,
	}
}

func (w *wire) flags(set *pflag.FlagSet) {
	w.target.flags(set)
	set.StringVar(&w.prefix, "prefix", "", "`prefix` of the lock client (core.WithPrefix)")
	w.pubSubFlag(set)
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
	}, core.WithPrefix(w.prefix))
}
