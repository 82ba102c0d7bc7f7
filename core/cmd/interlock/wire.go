package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// wire is the command of that name.
type wire struct {
	redis   string
	cluster bool
	prefix  string
	pubSub  string
}

func newWire() *command {
	w := &wire{}
	return &command{
		name:     "wire",
		synopsis: "--redis URL [flags]",
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
		flags: w.flags,
		run:   w.run,
	}
}

func (w *wire) flags(set *pflag.FlagSet) {
	set.StringVar(&w.redis, "redis", "", "`URL` of the Redis, - to read it from the standard input")
	set.BoolVar(&w.cluster, "cluster", false, "the URL is that of a node of a Cluster")
	set.StringVar(&w.prefix, "prefix", "", "`prefix` of the lock client (core.WithPrefix)")
	set.StringVar(&w.pubSub, "pubsub", "auto", "`mode` of the lock client in a Cluster (core.WithPubSub): auto, sharded or classic")
}

func (w *wire) run(ctx context.Context, std streams, args []string) error {
	if len(args) > 0 {
		return usagef("arguments %q: there are only flags", args)
	}
	if err := oneOf("pubsub", w.pubSub, []string{"auto", "sharded", "classic"}); err != nil {
		return err
	}
	rdb, err := w.connect(std.in)
	if err != nil {
		return err
	}
	defer rdb.Close()
	found, err := w.ask(ctx, rdb)
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
func (w *wire) ask(ctx context.Context, rdb redis.UniversalClient) (core.Wire, error) {
	mode := map[string]core.PubSub{"auto": core.PubSubAuto, "sharded": core.PubSubSharded, "classic": core.PubSubClassic}[w.pubSub]
	locks, err := core.New(rdb, core.WithPrefix(w.prefix), core.WithPubSub(mode))
	if err != nil {
		return core.Wire{}, err
	}
	found, err := locks.Wire(ctx)
	return found, errors.Join(err, locks.Close(ctx))
}

// connect makes the client that the URL is for.
func (w *wire) connect(stdin io.Reader) (redis.UniversalClient, error) {
	switch w.redis {
	case "":
		return nil, usagef("no Redis: write --redis redis://user:password@host:6379/0")
	case "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return w.clientOf(strings.TrimSpace(string(text)))
	default:
		return w.clientOf(w.redis)
	}
}

// clientOf keeps what go-redis says of a URL to itself: it quotes what it does not
// understand, which may be the password.
func (w *wire) clientOf(url string) (redis.UniversalClient, error) {
	if w.cluster {
		if opts, err := redis.ParseClusterURL(url); err == nil {
			return redis.NewClusterClient(opts), nil
		}
	} else if strings.Contains(url, "master_name=") {
		if opts, err := redis.ParseFailoverURL(url); err == nil {
			return redis.NewFailoverClient(opts), nil
		}
	} else if opts, err := redis.ParseURL(url); err == nil {
		return redis.NewClient(opts), nil
	}
	return nil, usagef("--redis: go-redis does not understand the URL: want redis://user:password@host:6379/0 or rediss://…, " +
		"with %%25 for %% and %%2F for / in a password; for a Cluster no database, for a Sentinel ?master_name=…")
}
