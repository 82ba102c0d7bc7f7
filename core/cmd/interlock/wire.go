package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// wire is the command of that name.
type wire struct {
	target

	prefix string
	pubSub string
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

The URL is one of go-redis: for a Sentinel with master_name, for a Cluster with --cluster
and, if one address is not enough, addr. - reads it from the standard input, so
that a password is not in the list of processes.

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
	pubSubFlag(set, &w.pubSub)
}

func (w *wire) run(ctx context.Context, std streams, _ []string) error {
	mode, err := pubSubOf(w.pubSub)
	if err != nil {
		return err
	}
	rdb, err := w.connect(std.in)
	if err != nil {
		return err
	}
	defer rdb.Close()
	found, err := w.ask(ctx, rdb, mode)
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
}

// ask has a client like the program's find out.
func (w *wire) ask(ctx context.Context, rdb redis.UniversalClient, mode core.PubSub) (core.Wire, error) {
	locks, err := core.New(rdb, core.WithPrefix(w.prefix), core.WithPubSub(mode))
	if err != nil {
		return core.Wire{}, err
	}
	found, err := locks.Wire(ctx)
	return found, errors.Join(err, locks.Close(ctx))
}
