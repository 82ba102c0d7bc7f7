package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/bounded"
	"github.com/interlock-go/interlock/core/internal/topology"
)

// redisVariable is the environment variable with the Redis that is asked where no flag says so.
const redisVariable = "INTERLOCK_REDIS"

// target is the Redis that a command asks.
type target struct {
	url     string
	cluster bool
	pubSub  string

	tls bool // the URL is one of TLS
	rdb redis.UniversalClient
}

func (r *target) flags(set *pflag.FlagSet) {
	set.StringVar(&r.url, "redis", "", "`URL` of the Redis, - to read it from the standard input; else $"+redisVariable)
	set.BoolVar(&r.cluster, "cluster", false, "the URL is that of a node of a Cluster")
	r.pubSub = "auto" // without the flag
}

// connect makes the client that the URL is for.
func (r *target) connect(stdin io.Reader) (redis.UniversalClient, error) {
	url := r.url
	if url == "" {
		url = os.Getenv(redisVariable)
	}
	switch url {
	case "":
		return nil, usagef("no Redis: write --redis redis://user:password@host:6379/0, or set %s", redisVariable)
	case "-":
		text, err := bounded.All(stdin, bounded.Line)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return r.clientOf(strings.TrimSpace(string(text)))
	default:
		return r.clientOf(url)
	}
}

// clientOf keeps what go-redis says of a URL to itself: it quotes what it does not
// understand, which may be the password.
func (r *target) clientOf(url string) (redis.UniversalClient, error) {
	r.tls = strings.HasPrefix(url, "rediss://")
	if r.cluster {
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

// pubSubFlag says how the lock clients of a Cluster send and listen.
func (r *target) pubSubFlag(set *pflag.FlagSet) {
	set.StringVar(&r.pubSub, "pubsub", "auto", "`mode` of the lock client in a Cluster (core.WithPubSub): auto, sharded or classic")
}

// patience is how long a Redis may be silent until it counts as not there.
const patience = 3 * time.Second

// locks runs a function with a client for the locks of the Redis, once that answers.
func (r *target) locks(ctx context.Context, stdin io.Reader, use func(*core.Client) error, opts ...core.Option) error {
	return r.open(ctx, stdin, func(locks *core.Client) error {
		if err := locks.Ready(ctx); err != nil {
			return err
		}
		if single, is := r.rdb.(*redis.Client); is {
			switch topology.Mode(ctx, single) {
			case "cluster":
				return errOneNode
			case "sentinel":
				return usagef("the server is a Sentinel, which has no locks: write the name of its master into the URL, as in redis://host:26379/0?master_name=main")
			}
		}
		return use(locks)
	}, opts...)
}

// open runs a function with a lock client, whether the Redis answers or not.
func (r *target) open(ctx context.Context, stdin io.Reader, use func(*core.Client) error, opts ...core.Option) (err error) {
	modes := map[string]core.PubSub{"auto": core.PubSubAuto, "sharded": core.PubSubSharded, "classic": core.PubSubClassic}
	if err := oneOf("pubsub", r.pubSub, []string{"auto", "sharded", "classic"}); err != nil {
		return err
	}
	rdb, err := r.connect(stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	r.rdb = rdb
	locks, err := core.New(rdb, append(opts, core.WithPubSub(modes[r.pubSub]), core.WithBackendTimeout(patience))...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
	return r.explain(use(locks))
}
