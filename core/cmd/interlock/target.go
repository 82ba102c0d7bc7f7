package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/input"
	"github.com/interlock-go/interlock/core/internal/topology"
)

// redisVariable is the environment variable with the URL of the Redis. The flag takes precedence.
const redisVariable = "INTERLOCK_REDIS"

// urlText explains the URL of the Redis in the help of a command.
const urlText = `The URL has the form of go-redis: redis://, rediss:// or unix://. For a Sentinel it has
master_name. For a Cluster write --cluster, and addr if one address is not enough. It may
be in ` + redisVariable + `, or come from the standard input (--redis -), so that a
password is not in the list of processes.`

// target is the Redis that a command connects to.
type target struct {
	url     string
	cluster bool
	prefix  string
	pubSub  string

	tls bool // the scheme of the URL requires TLS
	rdb redis.UniversalClient
}

func (r *target) flags(set *pflag.FlagSet) {
	set.StringVar(&r.url, "redis", "", "`URL` of the Redis; - reads it from the standard input. Default: $"+redisVariable)
	set.BoolVar(&r.cluster, "cluster", false, "the URL names a node of a Cluster")
	r.pubSub = "auto" // for commands without the flag
}

// connect returns a client for the URL.
func (r *target) connect(stdin io.Reader) (redis.UniversalClient, error) {
	address := r.url
	if address == "" {
		address = os.Getenv(redisVariable)
	}
	switch address {
	case "":
		return nil, usagef("no Redis: write --redis redis://user:password@host:6379/0, or set %s", redisVariable)
	case "-":
		text, err := input.All(stdin, input.Line)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return r.clientOf(strings.TrimSpace(string(text)))
	default:
		return r.clientOf(address)
	}
}

// clientOf returns a client for a URL. It does not repeat the error of go-redis, which quotes a part of the URL
// that may be the password.
func (r *target) clientOf(address string) (redis.UniversalClient, error) {
	r.tls = strings.HasPrefix(address, "rediss://")
	if r.cluster {
		if opts, err := clusterOptions(address); err == nil {
			return redis.NewClusterClient(opts), nil
		}
	} else if strings.Contains(address, "master_name=") {
		if opts, err := redis.ParseFailoverURL(address); err == nil {
			return redis.NewFailoverClient(opts), nil
		}
	} else if opts, err := redis.ParseURL(address); err == nil {
		return redis.NewClient(opts), nil
	}
	return nil, usagef("--redis: go-redis does not understand the URL: write redis://user:password@host:6379/0 or rediss://…, " +
		"with %%25 for %% and %%2F for / in a password; for a Cluster a database only with Valkey 9, for a Sentinel ?master_name=…")
}

// clusterOptions returns the options of a client of a Cluster. go-redis ignores the number of the database at the end of
// the URL.
func clusterOptions(address string) (*redis.ClusterOptions, error) {
	opts, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	database, err := strconv.ParseUint(cmp.Or(strings.Trim(u.Path, "/"), "0"), 10, 31)
	if database != 0 {
		opts.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Select(ctx, int(database)).Err() }
	}
	return opts, err
}

// clientFlags adds the flags of the Redis and of the lock clients of a service.
func (r *target) clientFlags(set *pflag.FlagSet) {
	r.flags(set)
	set.StringVar(&r.prefix, "prefix", "", "`prefix` of the lock client (core.WithPrefix)")
	r.pubSubFlag(set)
}

// pubSubFlag adds the flag for the messages of lock clients in a Cluster.
func (r *target) pubSubFlag(set *pflag.FlagSet) {
	set.StringVar(&r.pubSub, "pubsub", "auto", "`mode` of the lock client in a Cluster (core.WithPubSub): auto, sharded or classic")
}

// silentAfter is the time after which a silent Redis counts as unavailable.
const silentAfter = 3 * time.Second

// locks calls use with a client for the locks of the Redis. It returns an error if the Redis does not answer.
func (r *target) locks(ctx context.Context, stdin io.Reader, use func(*core.Client) error) error {
	return r.open(ctx, stdin, func(locks *core.Client) error {
		if err := locks.Ready(ctx); err != nil && !strings.Contains(err.Error(), "the server is a replica") { // which can be read
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
	})
}

// open calls use with a lock client, even if the Redis does not answer.
func (r *target) open(ctx context.Context, stdin io.Reader, use func(*core.Client) error) (err error) {
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
	locks, err := core.New(rdb, core.WithPrefix(r.prefix), core.WithPubSub(modes[r.pubSub]), core.WithBackendTimeout(silentAfter))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
	return r.explain(use(locks))
}

// refusedf returns an error that explains why a server refuses a command and what to write. It does not
// match [core.ErrUnavailable], because waiting does not help.
func refusedf(format string, args ...any) error {
	return fmt.Errorf(format, args...) //nolint:err113 // a text for people
}

// explain replaces a known refusal with its reason and adds the likely cause if the server did not answer. It
// returns other errors unchanged.
func (r *target) explain(err error) error {
	if !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	if refused := refusalByTLS(err); refused != nil {
		return refused
	}
	_, reply, ofSentinels := strings.Cut(err.Error(), "all sentinels specified in configuration are unreachable: ")
	if said, ok := errors.AsType[redis.Error](err); ok && !ofSentinels {
		reply = said.Error()
	}
	if refused := refusalBy(reply, ofSentinels); refused != nil {
		return refused
	}
	_, garbled, isGarbled := strings.Cut(err.Error(), " reply: ") // go-redis quotes a reply that it cannot parse
	switch {
	case isGarbled:
		return refusedf("the server is not a Redis: it answers %.100s; write the host and port of one", garbled)
	case r.tls && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w; if the server has no TLS, write redis:// instead of rediss://", err)
	case !r.tls && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return fmt.Errorf("%w; if the server has TLS, write rediss:// instead of redis://", err)
	}
	return err
}

// refusalByTLS returns an explanation of a failed TLS handshake, or nil if no handshake failed.
func refusalByTLS(err error) error {
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return refusedf("the server does not speak TLS: write redis:// instead of rediss://")
	}
	if e, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return refusedf("the certificate of the server is not accepted: %v; let SSL_CERT_FILE name the file with the certificate of its CA", e.Err)
	}
	if e, is := errors.AsType[*net.OpError](err); is && e.Op == "remote error" {
		return refusedf("the server refuses the TLS connection: %v; a server that wants certificates of its clients cannot be asked, because a URL has none", e.Err)
	}
	return nil
}

// refusalBy returns an explanation of an error reply from Redis or its Sentinels, or nil for an
// unknown reply.
func refusalBy(reply string, ofSentinels bool) error {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(reply, text) })
	}
	switch {
	case ofSentinels && has("redis: nil"):
		return refusedf("the Sentinels do not know the master: write its name, as SENTINEL MASTERS shows it, into master_name=…")
	case ofSentinels && has("NOAUTH", "WRONGPASS"):
		return refusedf("the Sentinels refuse the password (%s): write sentinel_username=…&sentinel_password=… into the URL", reply)
	case ofSentinels && has("ERR unknown command"):
		return refusedf("the server is not a Sentinel: write the URL without master_name, or with the port of a Sentinel")
	case has("NOAUTH"):
		return refusedf("Redis wants a password: write redis://user:password@host:6379/0, without the user for the default one")
	case has("WRONGPASS", "ERR invalid password", "ERR AUTH <password> called without any password"):
		return refusedf("Redis refuses the user or the password of the URL (%s)", reply)
	case has("NOPERM", "ERR The user executing the script can't", "ERR ACL failure in script"), has("ERR Error running script") && strings.Contains(reply, "NOPERM"):
		return refusedf("the user of Redis may not do that: %s; ACL LOG in redis-cli names the command or the key, and examples/operating/README.md lists the rights under Rights", reply)
	case has("MOVED "):
		return errOneNode
	case has("ERR This instance has cluster support disabled"):
		return refusedf("the server does not belong to a Cluster: leave --cluster out")
	case has("ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed"):
		return refusedf("Redis does not have the database at the end of the URL (%s): write the number of an existing database, such as /0", reply)
	case has("READONLY"):
		return refusedf("the server is a replica, which cannot release locks: write the URL of its master")
	case has("DENIED"):
		return refusedf("Redis is in protected mode, in which it answers no other machine: give its default user a password")
	case has("ERR unknown command"):
		return refusedf("the server is not a Redis that can have locks, or hides commands that they need: %s", reply)
	}
	return nil
}

var errOneNode = usagef("the server belongs to a Cluster, where a node knows only its own keys: write --cluster")
